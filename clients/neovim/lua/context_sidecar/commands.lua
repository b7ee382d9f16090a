-- What the commands do.

local request = require('context_sidecar.client').request
local contexts = require('context_sidecar.contexts')
local live = require('context_sidecar.live')
local sessions = require('context_sidecar.sessions')

local M = {}

-- No session has this id: nothing that changes is shown.
local NO_SESSION = ''

local function fail(problem)
  vim.notify('context-sidecar: ' .. problem, vim.log.levels.ERROR)
end

--- Shows lines in a buffer that is thrown away with its window. What is shown of a session, or of all of them,
--- follows the store.
local function show(title, lines, session_id)
  vim.cmd('botright new')
  local buffer = vim.api.nvim_get_current_buf()
  vim.bo[buffer].buftype = 'nofile'
  vim.bo[buffer].bufhidden = 'wipe'
  vim.bo[buffer].swapfile = false
  pcall(vim.api.nvim_buf_set_name, buffer, string.format('%s (%d)', title, buffer))
  local shown, problem = live.show(buffer, session_id, lines)
  if shown then
    if session_id and session_id ~= NO_SESSION then require('context_sidecar.fences').colour(buffer) end
    -- Some releases leave the cursor behind the lines that were written.
    vim.api.nvim_win_set_cursor(0, { 1, 0 })
    return buffer
  end
  vim.api.nvim_buf_delete(buffer, { force = true })
  fail(problem)
end

--- The session that a command is about, or nil and what is wrong.
local function chosen(name)
  name = name ~= '' and name or sessions.of_buffer(0)
  if not name then return nil, 'name a session; :Context lists them' end
  return sessions.find(name)
end

local function list_sessions()
  local found
  local function lines()
    local sessions_now, problem = sessions.list()
    if not sessions_now then return nil, problem end
    found = sessions_now
    local listed = {}
    for _, session in ipairs(found) do
      local key = type(session.sessionKey) == 'string' and session.sessionKey or session.sessionId
      local facts = string.format('%d messages, %s, %s', session.messageCount, session.engine, session.updatedAt)
      table.insert(listed, string.format('%s  %s', key, facts))
    end
    return #listed > 0 and listed or { 'There are no stored sessions in this namespace.' }
  end
  local buffer = show('Context sessions', lines)
  if not buffer then return end
  vim.keymap.set('n', '<CR>', function()
    local session = found[vim.api.nvim_win_get_cursor(0)[1]]
    if session then M.context(session.sessionId) end
  end, { buffer = buffer, desc = 'Show what the model sees of this session' })
end

--- Lists the stored sessions, or shows what the model sees of one, and why.
function M.context(name)
  if name == '' and not sessions.of_buffer(0) then return list_sessions() end
  local session, missing = chosen(name)
  if not session then return fail(missing) end
  show('Context of ' .. session.sessionId, function() return contexts.whole(session) end, session.sessionId)
end

--- Shows what the model sees of a session up to a turn; for code lenses.
function M.turn(place)
  if not place.sessionId then return fail('this transcript is not a stored session; :Context lists those') end
  local session, missing = sessions.find(place.sessionId)
  if not session then return fail(missing) end
  local title = string.format('Context of %s at %s', session.sessionId, place.turnId)
  show(title, function() return contexts.up_to(session, place.turnId) end, session.sessionId)
end

--- Marks what was searched for in the current window.
local function mark(pattern)
  if vim.w.context_sidecar_match then pcall(vim.fn.matchdelete, vim.w.context_sidecar_match) end
  vim.w.context_sidecar_match = vim.fn.matchadd('Search', pattern)
end

--- Marks the words in the list and in sessions that are opened from it; the cursor goes to the first of its line.
local function mark_words(query)
  local group = vim.api.nvim_create_augroup('context_sidecar_search', { clear = true })
  local words = vim.tbl_map(function(word) return vim.fn.escape(word, [[/\]]) end, vim.split(query, '%s+', { trimempty = true }))
  if #words == 0 then return end
  local pattern = [[\c\V\(]] .. table.concat(words, [[\|]]) .. [[\)]]
  vim.api.nvim_create_autocmd('BufWinEnter', {
    group = group,
    pattern = 'context-sidecar://session/*',
    callback = function(event)
      mark(pattern)
      -- The quickfix list puts the cursor into its line after this.
      vim.schedule(function()
        if vim.api.nvim_get_current_buf() == event.buf then vim.fn.search(pattern, 'cz', vim.fn.line('.')) end
      end)
    end,
  })
  mark(pattern)
end

--- Fills the quickfix list with sessions and messages.
function M.search(query)
  local symbols, problem = request('workspace/symbol', { query = query })
  if not symbols then return fail(problem) end
  local items = {}
  for _, symbol in ipairs(symbols) do
    local uri, position = symbol.location.uri:match('^(.-)#(%d+)$')
    local text = symbol.name .. (symbol.containerName and ('  ' .. symbol.containerName) or '')
    table.insert(items, { filename = uri or symbol.location.uri, lnum = tonumber(position) or 1, col = 1, text = text })
  end
  vim.fn.setqflist({}, ' ', { title = 'ContextSearch ' .. query, items = items })
  if #items == 0 then return vim.notify('Nothing is found for ' .. query) end
  vim.cmd('botright copen')
  mark_words(query)
end

--- Compacts a session.
function M.compact(name)
  local session, missing = chosen(name)
  if not session then return fail(missing) end
  local params = { sessionId = session.sessionId, force = true }
  local result, problem = request('context/compact', params, session.messageFormat)
  if not result then return fail(problem) end
  if not result.compacted then
    return vim.notify('Not compacted: ' .. (type(result.reason) == 'string' and result.reason or 'nothing to do'))
  end
  local facts = type(result.result) == 'table' and result.result or {}
  local after = type(facts.tokensAfter) == 'number' and string.format(' to %d', facts.tokensAfter) or ''
  vim.notify(string.format('Compacted from %d%s tokens', facts.tokensBefore or 0, after))
end

--- Shows what the sidecar says of its own health.
function M.doctor()
  local result, problem = request('engine/doctor', {})
  if not result then return fail(problem) end
  local lines = { result.ok and 'Everything is well.' or 'Something has to be done.', '' }
  for _, check in ipairs(result.checks) do
    table.insert(lines, string.format('%s %s: %s', check.ok and 'ok  ' or 'FAIL', check.name, check.message))
    if not check.ok and type(check.fix) == 'string' then table.insert(lines, '     ' .. check.fix) end
  end
  show('Context doctor', function() return lines end, NO_SESSION)
end

--- Shows or hides tokens in the current buffer.
function M.tokens()
  require('context_sidecar.tokens').toggle(vim.api.nvim_get_current_buf())
end

--- Names of sessions that begin with what was typed.
function M.complete(prefix)
  local names = {}
  for _, session in ipairs(sessions.list() or {}) do
    local name = type(session.sessionKey) == 'string' and session.sessionKey or session.sessionId
    if vim.startswith(name, prefix) then table.insert(names, name) end
  end
  return names
end

return M
