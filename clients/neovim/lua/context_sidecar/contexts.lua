-- What the model sees of a session, in words.

local request = require('context_sidecar.client').request
local made = require('context_sidecar.fences').made

local M = {}

--- Begins the ids of copies; editors do not list them.
M.COPY = 'editor-preview:'

local uv = vim.uv or vim.loop
local copies = 0

local BAR = 40
-- Characters of a message beside what became of it.
local OPENING = 60

local function composition(assembled, newest)
  local up_to = newest and (', up to turn ' .. newest) or ''
  local lines = { string.format('%d tokens%s', assembled.estimatedTokens, up_to), '' }
  for _, part in ipairs(assembled.composition) do
    local share = part.tokens / math.max(assembled.estimatedTokens, 1)
    local bar = string.rep('#', math.floor(share * BAR + 0.5))
    table.insert(lines, string.format('%-12s %8d tokens %5d messages  %s', part.kind, part.tokens, part.messageCount, bar))
  end
  return lines
end

local function said(message)
  if type(message.content) == 'string' then return message.content end
  return vim.json.encode(message)
end

local function speaker(message)
  return tostring(message.role or message.type)
end

--- A message of a context: its heading, and its text.
local function block(message)
  local text = said(message)
  local inner, name = made(text)
  return { '[' .. (name or speaker(message)) .. ']', inner or text, '' }
end

--- How a message begins, on one line.
local function opening(message)
  local line = said(message):sub(1, 4 * OPENING):gsub('%s+', ' ')
  if vim.fn.strchars(line) > OPENING then line = vim.fn.strcharpart(line, 0, OPENING - 1) .. '…' end
  return speaker(message) .. ': ' .. line
end

local function number(turn_id)
  return tonumber(tostring(turn_id):match('^t(%d+)$')) or 0
end

local function answer_of_copy(copy, format)
  local assembled, problem = request('context/assemble', { sessionId = copy }, format)
  if not assembled then return nil, problem end
  local explained
  explained, problem = request('context/explain', { sessionId = copy, resultId = assembled.resultId }, format)
  if not explained then return nil, problem end
  return assembled, explained.decisions
end

--- What the model would see of a session now, with the decisions behind it, or nil and what is wrong.
--- A copy is asked and erased: the agent's session keeps its cut and its epoch, whatever our budget is.
local function answer(session)
  copies = copies + 1
  local copy = string.format('%s%d-%d-%d', M.COPY, os.time(), uv.getpid(), copies)
  local forked, problem = request('session/fork', { sessionId = session.sessionId, newSessionId = copy })
  if not forked then return nil, problem end
  local assembled, decisions = answer_of_copy(copy, session.messageFormat)
  request('session/delete', { sessionId = copy })
  return assembled, decisions
end

local function texts_of(session)
  local texts, cursor = {}, nil
  repeat
    local page, problem = request('session/export', { sessionId = session.sessionId, cursor = cursor })
    if not page then return nil, problem end
    for _, exported in ipairs(page.messages) do texts[exported.messageId] = exported.message end
    cursor = type(page.nextCursor) == 'string' and page.nextCursor or nil
  until not cursor
  return texts
end

--- How full the window is and of what, what became of each message, and the messages.
function M.whole(session)
  local assembled, decisions = answer(session)
  if not assembled then return nil, decisions end
  local texts, problem = texts_of(session)
  if not texts then return nil, problem end
  local newest = decisions[#decisions]
  local lines = composition(assembled, newest and newest.turnId)
  vim.list_extend(lines, { '', 'What became of each message:', '' })
  for _, decided in ipairs(decisions) do
    local place = string.format('%-5s %-10s %6d tokens', decided.turnId, decided.decision, decided.tokens)
    local message = texts[decided.messageId]
    table.insert(lines, string.format('%s  %s (%s)', place, message and opening(message) or '', decided.reason))
  end
  vim.list_extend(lines, { '', 'What the model sees:', '' })
  if type(assembled.systemPromptAddition) == 'string' then
    vim.list_extend(lines, { '[added to the system prompt]', assembled.systemPromptAddition, '' })
  end
  for _, message in ipairs(assembled.messages) do
    vim.list_extend(lines, block(message))
  end
  return lines
end

local function summaries_of(session)
  local found = request('session/summaries', { sessionId = session.sessionId })
  local summaries = {}
  for _, node in ipairs(found and found.summaries or {}) do summaries[node.nodeId] = node.text end
  return summaries
end

--- What the newest answer holds of everything up to a turn, such as `t3`.
function M.up_to(session, turn_id)
  local assembled, decisions = answer(session)
  if not assembled then return nil, decisions end
  local texts, problem = texts_of(session)
  if not texts then return nil, problem end
  local summaries, told = summaries_of(session), {}
  local lines = { 'Up to ' .. turn_id .. ', as the newest answer has it', '' }
  for _, decided in ipairs(decisions) do
    local by = type(decided.by) == 'string' and decided.by or nil
    if number(decided.turnId) > number(turn_id) then break end
    if decided.decision == 'summarised' and by and summaries[by] then
      if not told[by] then vim.list_extend(lines, { '[' .. decided.turnId .. ' summarised by ' .. by .. ']', summaries[by], '' }) end
      told[by] = true
    else
      local message = texts[decided.messageId]
      local head = string.format('[%s %s: %s]', decided.turnId, decided.decision, decided.reason)
      vim.list_extend(lines, { head, decided.decision == 'dropped' and '' or said(message or {}), '' })
    end
  end
  return lines
end

return M
