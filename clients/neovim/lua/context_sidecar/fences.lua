-- Text that the sidecar wrote into a context, without the fence by which it is recognised.

local M = {}

M.NAMES = {
  summary = 'summary of earlier messages',
  activityLog = 'activity log of earlier turns',
  memory = 'memory',
  recall = 'recalled from earlier turns',
  stub = 'shortened tool result',
  noResult = 'stand-in for a missing tool result',
  note = 'note of the sidecar',
}

local OPENING = '%[ctx:(%a+):[%w._~%%-]*:' .. string.rep('%d', 18) .. '%]%s?'
local CLOSING = '[/ctx]'

--- What a text says that is nothing but fenced text, and what it is; nil for any other, which is somebody else's.
function M.made(text)
  local parts, name, at = {}, nil, 1
  while at <= #text do
    local first, last, kind = text:find(OPENING, at)
    local close = first and text:find(CLOSING, last + 1, true)
    if not close or not M.NAMES[kind] or text:sub(at, first - 1):find('%S') then return nil end
    name = name or M.NAMES[kind]
    local inner = text:sub(last + 1, close - 1):gsub('%s$', '')
    table.insert(parts, (inner:gsub('%[\\(\\*/?ctx[:%]])', '[%1')))
    at = close + #CLOSING
    if not text:find('%S', at) then break end
  end
  if not name then return nil end
  return table.concat(parts, '\n\n'), name
end

--- Colours the blocks of a buffer that the sidecar has made, and the headings of all.
function M.colour(buffer)
  local names = table.concat(vim.tbl_values(M.NAMES), [[\|]])
  vim.api.nvim_buf_call(buffer, function()
    vim.cmd([=[syntax match ContextSidecarHeading /^\[[a-z][^]]*\]$/]=])
    vim.cmd(string.format([=[syntax region ContextSidecarMade start=/^\[\(%s\)\]$/ end=/^\ze\[[a-z][^]]*\]$/]=], names))
  end)
  vim.cmd('highlight default link ContextSidecarHeading Title')
  vim.cmd('highlight default link ContextSidecarMade Special')
end

return M
