-- Stored sessions: their list, and their messages as a buffer.

local request = require('context_sidecar.client').request
local contexts = require('context_sidecar.contexts')

local M = {}

local PREFIX = 'context-sidecar://session/'

--- The sessions of the namespace, latest change first, or nil and what is wrong.
function M.list()
  local sessions, cursor = {}, nil
  repeat
    local page, problem = request('session/list', { cursor = cursor })
    if not page then return nil, problem end
    for _, session in ipairs(page.sessions) do
      if not vim.startswith(session.sessionId, contexts.COPY) then table.insert(sessions, session) end
    end
    cursor = type(page.nextCursor) == 'string' and page.nextCursor or nil
  until not cursor
  return sessions
end

--- The session with this id or key, or nil and what is wrong.
function M.find(name)
  local sessions, problem = M.list()
  if not sessions then return nil, problem end
  for _, session in ipairs(sessions) do
    if session.sessionId == name or session.sessionKey == name then return session end
  end
  return nil, 'there is no session ' .. name
end

--- The name of the buffer that shows a session.
function M.uri(session_id)
  local escaped = session_id:gsub('[^%w%-%._~]', function(letter) return string.format('%%%02X', letter:byte()) end)
  return PREFIX .. escaped
end

--- The session whose messages a buffer shows, nil where it shows none.
function M.of_buffer(buffer)
  local name = vim.api.nvim_buf_get_name(buffer)
  if not vim.startswith(name, PREFIX) then return nil end
  local escaped = name:sub(#PREFIX + 1):gsub('#.*$', '')
  return (escaped:gsub('%%(%x%x)', function(code) return string.char(tonumber(code, 16)) end))
end

local function messages(session_id)
  local lines, cursor = {}, nil
  repeat
    local page, problem = request('session/export', { sessionId = session_id, cursor = cursor })
    if not page then return nil, problem end
    for _, exported in ipairs(page.messages) do
      table.insert(lines, vim.json.encode(exported.message))
    end
    cursor = type(page.nextCursor) == 'string' and page.nextCursor or nil
  until not cursor
  return lines
end

--- Fills a buffer with the messages of a session, one a line, and keeps it in step with the store.
function M.read(buffer, name)
  local session_id = M.of_buffer(buffer)
  if not session_id then return end
  local live = require('context_sidecar.live')
  local shown, problem = live.show(buffer, session_id, function() return messages(session_id) end)
  if not shown then return vim.notify(problem, vim.log.levels.ERROR) end
  vim.bo[buffer].buftype = 'nofile'
  vim.bo[buffer].filetype = 'jsonl'
  vim.bo[buffer].modified = false
  local position = tonumber(name:match('#(%d+)$'))
  if position and vim.api.nvim_get_current_buf() == buffer then
    local last = vim.api.nvim_buf_line_count(buffer)
    vim.api.nvim_win_set_cursor(0, { math.min(position, last), 0 })
  end
  require('context_sidecar').attach(buffer)
end

return M
