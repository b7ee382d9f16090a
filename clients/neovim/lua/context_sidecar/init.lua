-- Settings, and the language features of transcripts.

local M = {}

M.settings = {
  -- The program and its arguments.
  cmd = { 'context-sidecar', 'serve' },
  -- Which sessions are shown: those of the host of this name.
  namespace = 'default',
  -- Id of the engine that answers `:Context`; the sidecar's configuration decides where this is nil.
  engine = nil,
  -- Overrides in the shape of the configuration file.
  config = nil,
  -- Whether transcripts show tokens from the start.
  tokens = true,
  -- How long a command waits for its answer, in milliseconds.
  timeout_ms = 30000,
}

--- Changes settings; those that are not named stay.
function M.setup(settings)
  M.settings = vim.tbl_extend('force', M.settings, settings or {})
end

--- Gives a buffer the language features; tells where the sidecar does not start, but not where there is none.
function M.attach(buffer)
  local client = require('context_sidecar.client')
  local id, problem = client.start()
  if id then
    vim.lsp.buf_attach_client(buffer, id)
  elseif problem ~= client.MISSING then
    vim.notify(problem, vim.log.levels.WARN)
  end
end

return M
