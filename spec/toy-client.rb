# A host's client in one file, and a driver for the client suite around it: `context-sidecar conformance client -- ruby
# toy-client.rb`. Written from the pages of this folder alone. It needs Ruby 3.1 and nothing else.

require 'json'
require 'open3'
require 'timeout'

class Failure < StandardError
  attr_reader :kind, :code, :data
  def initialize(kind, message, code = nil, data = nil)
    super(message); @kind = kind; @code = code; @data = data
  end
end

# One server process at a time; `open` starts another one after a death.
class Client
  # `answers` has a lambda for each request of the server that is answered: it gets the params and a queue that holds
  # something once the request is cancelled, and returns the result.
  def initialize(command, answers: {}, deltas: false, sources: [], on_notification: nil)
    @command, @answers, @deltas, @sources, @heard = command, answers, deltas, sources, on_notification
    @lock = Mutex.new; @write_lock = Mutex.new
  end

  # Starts the server and does the handshake.
  def open
    stdin, stdout, stderr, thread = Open3.popen3(*@command)
    @lock.synchronize do
      @in, @process, @pending, @asked, @next, @dead = stdin, thread, {}, {}, 0, false
      @bases = {}
    end
    stdin.binmode; stdout.binmode
    Thread.new { stderr.each_line { |_| } rescue nil }
    pending = @pending; asked = @asked
    Thread.new { read(stdout, stdin, pending, asked) }
    options = { protocolVersion: '1.0', host: { id: 'ruby-agent' }, messageFormat: 'openai',
                hostCapabilities: @answers.keys + (@deltas ? ['assembleDelta'] : []) }
    begin
      request('initialize', { processId: Process.pid, capabilities: {}, initializationOptions: { contextEngine: options } }, timeout: 30)
    rescue Failure
      force
      raise
    end
    notify('initialized', {})
    @sources.each { |name| request('memory/register', { name: name, injectionPoints: ['per-message'] }) }
  end

  # The result of a request; `handle` is called with its id, which `cancel` takes.
  def request(method, params, timeout: 180, handle: nil)
    queue = Queue.new
    id = @lock.synchronize do
      raise Failure.new('closed', 'the client was closed') if @closed
      raise Failure.new('lost', 'the sidecar has ended') if @dead || @in.nil?
      id = (@next += 1); @pending[id] = queue; id
    end
    handle&.call(id)
    begin
      write({ jsonrpc: '2.0', id: id, method: method, params: params })
    rescue IOError, SystemCallError
      raise Failure.new('lost', 'the sidecar has ended')
    end
    message = take(queue, timeout)
    if message.nil?
      notify('$/cancelRequest', { id: id })
      message = take(queue, 3)
      if message.nil?
        force
        raise Failure.new('timeout', "#{method}: no answer in time")
      end
      raise Failure.new('timeout', "#{method}: no answer in time") if message.is_a?(Hash) && message['error'] && message['error']['code'] == -32800
    end
    raise Failure.new('lost', 'the sidecar has ended') if message == :lost
    if (error = message['error'])
      raise Failure.new('cancelled', error['message']) if error['code'] == -32800
      raise Failure.new('answer', error['message'], error['code'], error['data'])
    end
    message['result']
  end

  # Cancels a request; a server that does not answer it within 3 seconds is killed.
  def cancel(id)
    notify('$/cancelRequest', { id: id })
    process = @process
    queue = @lock.synchronize { @pending[id] }
    return unless queue
    Thread.new do
      sleep 3
      force if @process.equal?(process) && @lock.synchronize { @pending.key?(id) }
    end
  end

  # As `request`, with edits applied: the answer always has whole messages.
  def assemble(params, **options)
    return request('context/assemble', params, **options) unless @deltas
    session = params['sessionId']; bases = @bases
    base = bases[session]
    params = params.merge('previousResultId' => base[0]) if base
    result = request('context/assemble', params, **options)
    if (edits = result['edits'])
      list, shift = base[1].dup, 0
      edits.each do |edit|
        list[edit['start'] + shift, edit['deleteCount']] = edit['messages']
        shift += edit['messages'].size - edit['deleteCount']
      end
      result = result.reject { |key, _| key == 'edits' }.merge('messages' => list)
    end
    bases[session] = [result['resultId'], result['messages']] if result['resultId']
    result
  end

  # Ends the server in order, or by force.
  def close
    return if @in.nil?
    begin
      request('shutdown', {}, timeout: 4)
      notify('exit', {})
    rescue Failure
      nil
    end
    @in.close rescue nil
    force unless @process.join(2)
    @closed = true
  end

  private

  def take(queue, seconds)
    Timeout.timeout(seconds) { queue.pop }
  rescue Timeout::Error
    nil
  end

  def force
    Process.kill('KILL', @process.pid) rescue nil
    @process.join
  end

  def notify(method, params)
    write({ jsonrpc: '2.0', method: method, params: params }) rescue nil
  end

  def write(message, stream = @in)
    body = JSON.generate(message)
    @write_lock.synchronize { stream.write("Content-Length: #{body.bytesize}\r\n\r\n", body); stream.flush }
  end

  def read(stdout, stdin, pending, asked)
    while (message = frame(stdout))
      if message['method'] && message.key?('id') then serve(message, stdin, asked)
      elsif message['method']
        if message['method'] == '$/cancelRequest'
          asked[message['params']['id']]&.push(true)
        else
          @heard&.call(message['method'], message['params'] || {})
        end
      else
        queue = @lock.synchronize { pending.delete(message['id']) }
        queue&.push(message)
      end
    end
  rescue IOError, SystemCallError, JSON::ParserError
    nil
  ensure
    stdin.close rescue nil
    @lock.synchronize { @dead = true if stdin.equal?(@in); pending.each_value { |queue| queue.push(:lost) }; pending.clear }
  end

  def frame(stream)
    length = nil
    while (line = stream.gets("\n"))
      line = line.chomp
      break if line.empty?
      name, value = line.split(':', 2)
      length = Integer(value.strip, 10) if name.to_s.casecmp('content-length').zero?
    end
    return nil if length.nil? # Nothing behind it can be read: the connection has ended.
    body = stream.read(length)
    body && body.bytesize == length ? JSON.parse(body.force_encoding('UTF-8')) : nil
  end

  def serve(message, stdin, asked)
    cancelled = asked[message['id']] = Queue.new
    Thread.new do
      answer = begin
        handler = @answers[message['method']]
        if handler.nil? then { error: { code: -32601, message: "unknown method #{message['method']}" } }
        else { result: handler.call(message['params'], cancelled) }
        end
      rescue Interrupt, StandardError => e
        code = e.is_a?(Failure) && e.kind == 'cancelled' ? -32800 : -32603
        { error: { code: code, message: e.message } }
      end
      asked.delete(message['id'])
      write({ jsonrpc: '2.0', id: message['id'], **answer }, stdin) rescue nil
    end
  end
end

# The driver: see checking-clients.md.
$stdout.sync = true
OUT = Mutex.new
def say(line) = OUT.synchronize { $stdout.write(JSON.generate(line) + "\n") }
command = JSON.parse(ENV.fetch('CEP_SIDECAR'))
say(ready: %w[cancelling timeouts deltas notifications progress runtime/complete memory/getContext])
client = nil
ids = {}

def handler(answer, gate)
  lambda do |_params, cancelled|
    if answer['together']
      gate[:lock].synchronize do
        gate[:count] += 1
        gate[:all].broadcast
        gate[:all].wait(gate[:lock], 20) while gate[:count] < answer['together']
      end
    end
    if answer['never']
      cancelled.pop
      raise Failure.new('cancelled', 'cancelled')
    end
    raise answer['error'] if answer['error']
    answer['result']
  end
end

$stdin.each_line do |line|
  op = JSON.parse(line)
  if op['do'] == 'cancel'
    target = ids[op['target']]
    client.cancel(target) if target
    next
  end
  started = Queue.new
  Thread.new do
    begin
      remember = ->(id) { ids[op['id']] = id; started.push(true) }
      options = { handle: remember }
      options[:timeout] = op['timeoutMs'] / 1000.0 if op['timeoutMs']
      result = case op['do']
               when 'open'
                 gate = { lock: Mutex.new, all: ConditionVariable.new, count: 0 }
                 answers = (op['answers'] || {}).to_h { |name, answer| [name, handler(answer, gate)] }
                 client = Client.new(command, answers: answers, deltas: op['deltas'], sources: op['sources'] || [],
                                     on_notification: ->(name, params) { say(heard: name, params: params) })
                 client.open
                 nil
               when 'request' then client.request(op['method'], op['params'], **options)
               when 'assemble' then client.assemble(op['params'], **options)
               when 'close' then client.close
               end
      say(id: op['id'], result: result)
    rescue Failure => e
      failure = { kind: e.kind, message: e.message }
      failure.merge!(code: e.code, data: e.data) if e.kind == 'answer'
      say(id: op['id'], failure: failure)
    rescue StandardError => e
      say(id: op['id'], failure: { kind: 'other', message: "#{e.class}: #{e.message}" })
    ensure
      ids.delete(op['id'])
      started.push(true)
    end
  end
  started.pop if %w[request assemble].include?(op['do'])
end
