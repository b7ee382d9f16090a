-- Opens a transcript in Neovim's language client, and prints its symbols before and after an edit.
--
-- TRANSCRIPT=... SERVER=... nvim --headless -u NONE -i NONE -n -S symbols.lua

local LIMIT_MS = 30000

local function symbols()
  local params = { textDocument = vim.lsp.util.make_text_document_params() }
  local answers, problem = vim.lsp.buf_request_sync(0, 'textDocument/documentSymbol', params, LIMIT_MS)
  if not answers then error(problem) end
  for _, answer in pairs(answers) do
    if answer.error then error(vim.inspect(answer.error)) end
    return answer.result
  end
  error('nobody has answered')
end

local function play()
  vim.cmd('edit ' .. vim.fn.fnameescape(vim.env.TRANSCRIPT))
  local exit_code
  local client_id = vim.lsp.start_client({
    name = 'context-sidecar',
    cmd = { vim.env.SERVER, 'serve' },
    root_dir = vim.fn.fnamemodify(vim.env.TRANSCRIPT, ':h'),
    on_exit = function(code) exit_code = code end,
  })
  if not vim.lsp.buf_attach_client(0, client_id) then error('the client does not attach') end
  if not vim.wait(LIMIT_MS, function()
    local client = vim.lsp.get_client_by_id(client_id)
    return client ~= nil and client.initialized
  end, 5) then
    error('the server does not initialize')
  end
  local client = vim.lsp.get_client_by_id(client_id)
  local before = symbols()
  vim.cmd([[1substitute/files/folders/]])
  vim.api.nvim_buf_set_lines(0, -1, -1, true, { vim.env.ADDED })
  local after = symbols()
  local provider = client.server_capabilities.documentSymbolProvider
  client.stop()
  if not vim.wait(LIMIT_MS, function() return exit_code ~= nil end, 5) then error('the server stays') end
  io.stdout:write(vim.json.encode({
    provider = provider, before = before, after = after, exitCode = exit_code,
  }), '\n')
end

local done, problem = pcall(play)
if not done then io.stderr:write(tostring(problem), '\n') end
vim.cmd(done and 'qall!' or 'cquit!')
