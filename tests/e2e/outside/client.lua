-- Plays a script of requests and notifications through Neovim's own RPC client, and prints what came back.
--
-- SCRIPT=... SERVER=... nvim --headless -u NONE -i NONE -n -S client.lua

local LIMIT_MS = 30000

local function wait_for(what, condition)
  if not vim.wait(LIMIT_MS, condition, 5) then
    error(what .. ' did not come in time')
  end
end

local function play()
  local file = assert(io.open(vim.env.SCRIPT))
  local script = vim.json.decode(file:read('*a'))
  file:close()

  local exit_code
  local dispatchers = { on_exit = function(code) exit_code = code end }
  local client
  if vim.fn.has('nvim-0.10') == 1 then
    client = vim.lsp.rpc.start({ vim.env.SERVER, 'serve' }, dispatchers)
  else
    client = vim.lsp.rpc.start(vim.env.SERVER, { 'serve' }, dispatchers)
  end
  local results = {}
  for _, step in ipairs(script) do
    if step.kind == 'request' then
      local problem, result, answered
      client.request(step.method, step.params, function(err, value)
        problem, result, answered = err, value, true
      end)
      wait_for(step.method, function() return answered end)
      if problem then error(vim.inspect(problem)) end
      table.insert(results, result == nil and vim.NIL or result)
    else
      client.notify(step.method, step.params)
    end
  end
  wait_for('the end of the server', function() return exit_code ~= nil end)
  io.stdout:write(vim.json.encode({ results = results, exitCode = exit_code }), '\n')
end

local done, problem = pcall(play)
if not done then io.stderr:write(tostring(problem), '\n') end
vim.cmd(done and 'qall!' or 'cquit!')
