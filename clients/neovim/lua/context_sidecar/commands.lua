-- What the commands do.

local request = require('context_sidecar.client').request
local sessions = require('context_sidecar.sessions')

local M = {}

local BAR = 40

local function fail(problem)
  vim.notify('context-sidecar: ' .. problem, vim.log.levels.ERROR)
end

--- Shows lines in a buffer that is thrown away with its window.
local function show(title, lines)
  vim.cmd('botright new')
  local buffer = vim.api.nvim_get_current_buf()
  local split = {}
  for _, line in ipairs(lines) do vim.list_extend(split, vim.split(line, '\n', { plain = true })) end
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, split)
  vim.bo[buffer].buftype = 'nofile'
  vim.bo[buffer].bufhidden = 'wipe'
  vim.bo[buffer].swapfile = false
  vim.bo[buffer].modifiable = false
  pcall(vim.api.nvim_buf_set_name, buffer, string.format('%s (%d)', title, buffer))
  return buffer
end

--- The session that a command is about, or nil and what is wrong.
local function chosen(name)
  name = name ~= '' and name or sessions.of_buffer(0)
  if not name then return nil, 'name a session; :Context lists them' end
  return sessions.find(name)
end

local function list_sessions()
  local found, problem = sessions.list()
  if not found then return fail(problem) end
  local lines = {}
  for _, session in ipairs(found) do
    local key = type(session.sessionKey) == 'string' and session.sessionKey or session.sessionId
    local facts = string.format('%d messages, %s, %s', session.messageCount, session.engine, session.updatedAt)
    table.insert(lines, string.format('%s  %s', key, facts))
  end
  if #lines == 0 then lines = { 'There are no stored sessions in this namespace.' } end
  local buffer = show('Context sessions', lines)
  vim.keymap.set('n', '<CR>', function()
    local session = found[vim.api.nvim_win_get_cursor(0)[1]]
    if session then M.context(session.sessionId) end
  end, { buffer = buffer, desc = 'Show what the model sees of this session' })
end

local function composition(assembled)
  local lines = { string.format('%d tokens, epoch %d', assembled.estimatedTokens, assembled.contextEpoch), '' }
  for _, part in ipairs(assembled.composition) do
    local share = part.tokens / math.max(assembled.estimatedTokens, 1)
    local bar = string.rep('#', math.floor(share * BAR + 0.5))
    table.insert(lines, string.format('%-12s %8d tokens %5d messages  %s', part.kind, part.tokens, part.messageCount, bar))
  end
  return lines
end

local function decisions(explained)
  local lines = { '', 'What became of each message:', '' }
  for _, decided in ipairs(explained.decisions) do
    local place = string.format('%-5s %-10s %6d tokens', decided.turnId, decided.decision, decided.tokens)
    table.insert(lines, string.format('%s  %s', place, decided.reason))
  end
  return lines
end

local function said(message)
  if type(message.content) == 'string' then return message.content end
  return vim.json.encode(message)
end

--- Lists the stored sessions, or shows what the model sees of one, and why.
function M.context(name)
  if name == '' and not sessions.of_buffer(0) then return list_sessions() end
  local session, missing = chosen(name)
  if not session then return fail(missing) end
  local id, format = session.sessionId, session.messageFormat
  local assembled, problem = request('context/assemble', { sessionId = id }, format)
  if not assembled then return fail(problem) end
  local lines = composition(assembled)
  local explained = request('context/explain', { sessionId = id, resultId = assembled.resultId }, format)
  if explained then vim.list_extend(lines, decisions(explained)) end
  vim.list_extend(lines, { '', 'What the model sees:', '' })
  if type(assembled.systemPromptAddition) == 'string' then
    vim.list_extend(lines, { '[added to the system prompt]', assembled.systemPromptAddition, '' })
  end
  for _, message in ipairs(assembled.messages) do
    vim.list_extend(lines, { '[' .. tostring(message.role or message.type) .. ']', said(message), '' })
  end
  show('Context of ' .. id, lines)
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
  show('Context doctor', lines)
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
