-- Loads the plugin, runs the steps of a script, and prints what each one gave.
--
-- PLUGIN=... SCRIPT=... SERVER=... nvim --headless -u NONE -i NONE -n -S plugin.lua

local LIMIT_MS = 30000

local function lines()
  return vim.api.nvim_buf_get_lines(0, 0, -1, false)
end

local function wait_for(what, condition)
  if not vim.wait(LIMIT_MS, condition, 10) then error(what .. ' did not come in time') end
end

local function virtual_text()
  local namespace = vim.api.nvim_get_namespaces().context_sidecar_tokens
  local marks = namespace and vim.api.nvim_buf_get_extmarks(0, namespace, 0, -1, { details = true }) or {}
  return vim.tbl_map(function(mark) return { mark[2], mark[4].virt_text[1][1] } end, marks)
end

local function language_client()
  for _, client in pairs(vim.lsp.get_clients and vim.lsp.get_clients() or vim.lsp.get_active_clients()) do
    if client.name == 'context-sidecar' then return client end
  end
end

local said = {}
vim.notify = function(text) table.insert(said, text) end

local steps
steps = {
  --- Runs a command; the buffer that is current then.
  run = function(step)
    vim.cmd(step.command)
    return { name = vim.api.nvim_buf_get_name(0), lines = lines(), line = vim.fn.line('.') }
  end,
  --- A request of the protocol.
  request = function(step)
    local result, problem = require('context_sidecar.client').request(step.method, step.params)
    if not result then error(problem) end
    return result
  end,
  --- Waits until the cursor is at a word.
  cursor_at = function(step)
    wait_for('the cursor at ' .. step.word, function() return vim.fn.expand('<cword>') == step.word end)
    return vim.fn.col('.')
  end,
  --- What is marked in the current window, a text for each line.
  marked = function()
    local pattern = vim.fn.getmatches()[1].pattern
    local texts = {}
    for _, line in ipairs(lines()) do
      local text = vim.fn.matchstr(line, pattern)
      if text ~= '' then table.insert(texts, text) end
    end
    return texts
  end,
  --- Names of the groups that colour the lines of the current buffer, for each line that has one.
  colours = function()
    local groups = {}
    for line, text in ipairs(lines()) do
      local group = vim.fn.synIDattr(vim.fn.synID(line, 1, 1), 'name')
      if group ~= '' then table.insert(groups, { group, text }) end
    end
    return groups
  end,
  quickfix = function() return vim.fn.getqflist({ items = 0, title = 0 }) end,
  --- Waits until the transcript shows tokens.
  tokens = function(step)
    wait_for('virtual text', function() return #virtual_text() == step.count end)
    return virtual_text()
  end,
  --- Why a request of the protocol is refused.
  refusal = function(step)
    local result, problem = require('context_sidecar.client').request(step.method, step.params)
    return { problem = not result and problem or 'it is not' }
  end,

  --- A request of the language server about the current buffer.
  language = function(step)
    wait_for('the language client', function()
      local client = language_client()
      return client ~= nil and client.initialized and vim.lsp.buf_is_attached(0, client.id)
    end)
    local params = vim.tbl_extend('force', { textDocument = { uri = vim.uri_from_bufnr(0) } }, step.params)
    local answers = vim.lsp.buf_request_sync(0, step.method, params, LIMIT_MS)
    for _, answer in pairs(answers or {}) do
      if answer.error then error(vim.inspect(answer.error)) end
      return answer.result
    end
    error('nobody has answered')
  end,
  --- Runs the command of a code lens in the current buffer; the buffer that is current then.
  click = function(step)
    local lenses = steps.language { method = 'textDocument/codeLens', params = vim.empty_dict() }
    local command = lenses[step.lens].command
    vim.lsp.commands[command.command](command)
    return { name = vim.api.nvim_buf_get_name(0), lines = lines() }
  end,
  --- Another process on the same store takes messages of the protocol, one a line.
  another = function(step)
    local printed = vim.fn.system({ vim.env.SERVER, 'serve' }, step.input)
    if vim.v.shell_error ~= 0 then error(printed) end
    return printed
  end,
  --- Waits until the current buffer shows words; its lines then.
  shown = function(step)
    wait_for(step.words, function() return table.concat(lines(), '\n'):find(step.words, 1, true) ~= nil end)
    return { lines = lines() }
  end,
  complete = function(step) return vim.fn.getcompletion(step.line, 'cmdline') end,
  diagnostics = function(step)
    wait_for('diagnostics', function() return #vim.diagnostic.get(0) == step.count end)
    return vim.tbl_map(function(found) return { found.lnum, found.code, found.message } end, vim.diagnostic.get(0))
  end,
  said = function() return said end,
}

local function play()
  vim.opt.runtimepath:append(vim.env.PLUGIN)
  vim.cmd('runtime plugin/context_sidecar.lua')
  require('context_sidecar').setup { cmd = { vim.env.SERVER, 'serve' }, timeout_ms = LIMIT_MS }
  local file = assert(io.open(vim.env.SCRIPT))
  local script = vim.json.decode(file:read('*a'))
  file:close()
  local results = {}
  for _, step in ipairs(script) do
    local result = steps[step['do']](step)
    table.insert(results, result == nil and vim.NIL or result)
  end
  io.stdout:write(vim.json.encode({ results = results, said = said }), '\n')
end

local done, problem = pcall(play)
if not done then io.stderr:write(tostring(problem), '\n') end
vim.cmd(done and 'qall!' or 'cquit!')
