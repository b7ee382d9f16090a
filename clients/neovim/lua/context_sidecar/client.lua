-- The sidecar processes of this editor: one for each format of messages, started when first needed.

local M = {}

local DEFAULT = 'openai'

-- The command of code lenses that open what the model sees at a turn.
local SHOW = 'contextSidecar.showContext'

local clients = {}
local waiting = 0

M.MISSING = 'context-sidecar is not installed. Install it from a checkout: uv tool install "./context-sidecar[lsp]" '
  .. '(or pipx install "./context-sidecar[lsp]"), or name the program in setup { cmd = { ... } }.'

local function capabilities()
  local declared = vim.lsp.protocol.make_client_capabilities()
  declared.textDocument.publishDiagnostics = declared.textDocument.publishDiagnostics or {}
  declared.experimental = { commands = { commands = { SHOW } } }
  return declared
end

local function options(format)
  local settings = require('context_sidecar').settings
  return {
    name = 'context-sidecar',
    cmd = settings.cmd,
    root_dir = vim.fn.getcwd(),
    capabilities = capabilities(),
    init_options = {
      contextEngine = {
        host = { id = 'neovim' },
        hostCapabilities = { 'session/changed' },
        namespace = settings.namespace,
        messageFormat = format or DEFAULT,
        engine = settings.engine,
        config = settings.config,
      },
    },
    handlers = {
      ['session/changed'] = function(_, params) require('context_sidecar.live').changed(params) end,
    },
    on_attach = function(_, buffer)
      if settings.tokens then require('context_sidecar.tokens').show(buffer) end
    end,
    on_exit = function() clients[format or DEFAULT] = nil end,
  }
end

vim.lsp.commands[SHOW] = function(command)
  require('context_sidecar.commands').turn(command.arguments[1])
end

local function start(config)
  if vim.fn.has('nvim-0.11') == 1 then return vim.lsp.start(config, { attach = false }) end
  return vim.lsp.start_client(config)
end

--- Calls a method of a client, in whatever way this Neovim has it.
function M.call(client, method, ...)
  if vim.fn.has('nvim-0.11') == 1 then return client[method](client, ...) end
  return client[method](...)
end

local function alive(id)
  local client = id and vim.lsp.get_client_by_id(id)
  -- A client that is not initialized yet is unknown to older releases.
  if client and M.call(client, 'is_stopped') then return nil end
  return client
end

--- Starts the sidecar for a format of messages unless it runs, without waiting; the client's id, or nil and what
--- is wrong.
function M.start(format)
  local settings = require('context_sidecar').settings
  local id = clients[format or DEFAULT]
  if id then return id end
  if vim.fn.executable(settings.cmd[1]) ~= 1 then return nil, M.MISSING end
  id = start(options(format))
  if not id then return nil, 'context-sidecar does not start; see :lua =vim.lsp.get_log_path()' end
  clients[format or DEFAULT] = id
  return id
end

--- The client for a format of messages, `nil` for the usual one, once it is ready; or nil and what is
--- wrong.
function M.get(format)
  local settings = require('context_sidecar').settings
  local id, problem = M.start(format)
  if not id then return nil, problem end
  waiting = waiting + 1
  local ready = vim.wait(settings.timeout_ms, function()
    local client = vim.lsp.get_client_by_id(id)
    return clients[format or DEFAULT] == nil or (client ~= nil and client.initialized == true)
  end, 10)
  waiting = waiting - 1
  local client = alive(id)
  if not ready or not client then
    clients[format or DEFAULT] = nil
    return nil, 'context-sidecar has refused to start; `context-sidecar doctor` tells why'
  end
  return client
end

--- Whether something waits for an answer right now.
function M.is_waiting()
  return waiting > 0
end

--- The result of a request of the protocol, or nil and what is wrong.
function M.request(method, params, format)
  local client, missing = M.get(format)
  if not client then return nil, missing end
  -- An empty table would travel as a list.
  if next(params) == nil then params = vim.empty_dict() end
  local problem, result, answered
  local sent = M.call(client, 'request', method, params, function(err, value)
    problem, result, answered = err, value, true
  end, 0)
  if not sent then return nil, 'context-sidecar has ended' end
  waiting = waiting + 1
  vim.wait(require('context_sidecar').settings.timeout_ms, function() return answered end, 5)
  waiting = waiting - 1
  if not answered then
    return nil, method .. ': no answer in time'
  end
  if problem then
    local hint = type(problem.data) == 'table' and problem.data.hint
    return nil, problem.message .. (hint and hint ~= '' and (' (' .. hint .. ')') or '')
  end
  return result
end

return M
