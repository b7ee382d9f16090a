-- Defines the commands; nothing else is loaded until one of them, or a transcript, is used.

if vim.g.loaded_context_sidecar then return end
vim.g.loaded_context_sidecar = true

local function command(name, action, options)
  vim.api.nvim_create_user_command(name, function(given)
    require('context_sidecar.commands')[action](given.args)
  end, options)
end

local function sessions(prefix)
  return require('context_sidecar.commands').complete(prefix)
end

command('Context', 'context', { nargs = '?', complete = sessions, desc = 'Show stored sessions, or what the model sees of one' })
command('ContextSearch', 'search', { nargs = '+', desc = 'Find stored sessions and messages' })
command('ContextCompact', 'compact', { nargs = '?', complete = sessions, desc = 'Compact a session' })
command('ContextDoctor', 'doctor', { nargs = 0, desc = 'Check the sidecar and its store' })
command('ContextTokens', 'tokens', { nargs = 0, desc = 'Show or hide tokens in this transcript' })

local group = vim.api.nvim_create_augroup('context_sidecar', { clear = true })

vim.api.nvim_create_autocmd('BufReadCmd', {
  group = group,
  pattern = 'context-sidecar://session/*',
  callback = function(event) require('context_sidecar.sessions').read(event.buf, event.match) end,
})

vim.api.nvim_create_autocmd({ 'BufReadPost', 'BufNewFile' }, {
  group = group,
  pattern = { '*.jsonl', '*.traj' },
  callback = function(event) require('context_sidecar').attach(event.buf) end,
})
