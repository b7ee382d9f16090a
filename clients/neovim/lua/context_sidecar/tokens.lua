-- Virtual text with the tokens of each message of a transcript.

local M = {}

local namespace = vim.api.nvim_create_namespace('context_sidecar_tokens')
local shown = {}

local function draw(buffer, hints)
  vim.api.nvim_buf_clear_namespace(buffer, namespace, 0, -1)
  local last = vim.api.nvim_buf_line_count(buffer)
  for _, hint in ipairs(hints) do
    if hint.position.line < last then
      local text = { { hint.label, 'Comment' } }
      vim.api.nvim_buf_set_extmark(buffer, namespace, hint.position.line, 0, { virt_text = text, virt_text_pos = 'eol' })
    end
  end
end

local function refresh(buffer)
  local sidecar = require('context_sidecar.client')
  local client = sidecar.get()
  if not client or not vim.api.nvim_buf_is_loaded(buffer) then return end
  local params = {
    textDocument = { uri = vim.uri_from_bufnr(buffer) },
    range = {
      start = { line = 0, character = 0 },
      ['end'] = { line = vim.api.nvim_buf_line_count(buffer), character = 0 },
    },
  }
  sidecar.call(client, 'request', 'textDocument/inlayHint', params, function(problem, hints)
    if not problem and hints and shown[buffer] and vim.api.nvim_buf_is_valid(buffer) then draw(buffer, hints) end
  end, buffer)
end

--- Shows tokens at the ends of lines, and keeps them in step with the text.
function M.show(buffer)
  if shown[buffer] then return end
  shown[buffer] = true
  vim.api.nvim_create_autocmd({ 'TextChanged', 'InsertLeave' }, {
    group = vim.api.nvim_create_augroup('context_sidecar_tokens_' .. buffer, { clear = true }),
    buffer = buffer,
    callback = function() refresh(buffer) end,
  })
  vim.api.nvim_create_autocmd('BufWipeout', {
    group = 'context_sidecar_tokens_' .. buffer,
    buffer = buffer,
    callback = function() shown[buffer] = nil end,
  })
  refresh(buffer)
end

--- Takes them away.
function M.hide(buffer)
  shown[buffer] = nil
  vim.api.nvim_create_augroup('context_sidecar_tokens_' .. buffer, { clear = true })
  vim.api.nvim_buf_clear_namespace(buffer, namespace, 0, -1)
end

--- Shows or hides them.
function M.toggle(buffer)
  if shown[buffer] then M.hide(buffer) else M.show(buffer) end
end

return M
