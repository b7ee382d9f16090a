-- Keeps what is shown of stored sessions in step with the store, whoever changes it.

local M = {}

local PAUSE_MS = 100

--- For each buffer: the session that it shows, nil for all of them, and what its lines are now.
local views = {}
local pending = {}
local due = false

--- Where two lists of lines differ: the first line that does, and behind the last ones, from 0.
local function difference(old, new)
  local shorter, first, same = math.min(#old, #new), 0, 0
  while first < shorter and old[first + 1] == new[first + 1] do first = first + 1 end
  while same < shorter - first and old[#old - same] == new[#new - same] do same = same + 1 end
  return first, #old - same, #new - same
end

--- Changes the lines that have changed; what is shown beside the others stays.
local function write(buffer, lines)
  local split = {}
  for _, line in ipairs(lines) do vim.list_extend(split, vim.split(line, '\n', { plain = true })) end
  local first, old_end, new_end = difference(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), split)
  if first == old_end and first == new_end then return end
  vim.bo[buffer].modifiable = true
  -- Otherwise the entries of the quickfix list that lead here would move on.
  M.replace = function()
    vim.api.nvim_buf_set_lines(buffer, first, old_end, false, vim.list_slice(split, first + 1, new_end))
  end
  vim.cmd("keepjumps lockmarks lua require('context_sidecar.live').replace()")
  vim.bo[buffer].modifiable = false
  vim.bo[buffer].modified = false
end

local function refresh(buffer, view)
  local lines = view.lines()
  -- What cannot be read now, such as a session that was deleted, stays as it was last seen.
  if lines and vim.api.nvim_buf_is_valid(buffer) then write(buffer, lines) end
end

local function refresh_all()
  due = false
  if require('context_sidecar.client').is_waiting() then
    due = true
    return vim.defer_fn(refresh_all, PAUSE_MS)
  end
  local changed = pending
  pending = {}
  for buffer, view in pairs(views) do
    if not vim.api.nvim_buf_is_valid(buffer) then
      views[buffer] = nil
    elseif view.session_id == nil or changed[view.session_id] then
      refresh(buffer, view)
    end
  end
end

--- Shows lines in a buffer, and again whenever the session changes; `lines` gives nil where it cannot.
function M.show(buffer, session_id, lines)
  local now, problem = lines()
  if not now then return nil, problem end
  write(buffer, now)
  views[buffer] = { session_id = session_id, lines = lines }
  return true
end

--- Hears `session/changed`.
function M.changed(params)
  pending[params.sessionId] = true
  if due then return end
  due = true
  vim.defer_fn(refresh_all, PAUSE_MS)
end

return M
