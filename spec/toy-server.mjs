// A small server of the Context Engine Protocol, written from the pages of spec/ alone. It knows the dialects
// `openai` and `anthropic`, and three engines: `full`, which sends the newest turns that fit, `default`, which is the
// same one, and `legacy`. What it stores goes to one file that only grows, `toy-store.jsonl` in the state folder; every
// process on that folder reads along.

import { createHash, randomUUID } from 'node:crypto'
import * as fs from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join, resolve, sep } from 'node:path'

const VERSION = '1.0'
const ENGINES = { default: 'Newest turns', full: 'Full', legacy: 'Legacy' }
const FORMATS = ['openai', 'anthropic']
const MIB = 1048576
const HEADER_LIMIT = 8192
const SLACK = 0.75
const SAME_VIEW = 0.75
const VIEWS = 4
const PAGE = 200
const MAX_CELLS = 4_000_000
const STORE_HEAD = '{"toyStore":1}'

const ADVICE = {
  '-32700': [false, 'Send one JSON-RPC 2.0 message as JSON text in UTF-8.'],
  '-32600': [false, 'Send one request at a time as an object with jsonrpc, id, method and params.'],
  '-32601': [false, 'Use one of the methods that the initialize answer lists.'],
  '-32602': [false, 'Correct the member that data.path names.'],
  '-32603': [false, 'Report it, with the log of the server.'],
  '-32002': [false, 'Send initialize first.'],
  '-32800': [true, 'Send it again if it is still wanted.'],
  1001: [false, 'Select another engine, or correct what the message names.'],
  1002: [false, 'Ask again with at least data.required tokens.'],
  1003: [false, 'Send the messages along, or store some in the session first.'],
  1004: [false, 'Declare data.capability at initialize, or use another engine.'],
  1006: [false, 'Look at the state folder; nothing in it was removed.'],
  1007: [true, 'Wait for answers that are due, then send the request again.'],
}

class Failure extends Error {
  constructor(code, message, more = {}) {
    super(message)
    const [retryable, hint] = ADVICE[code]
    this.answer = { code, message, data: { retryable, hint, ...more } }
  }
}

const wrong = (name, path, what) => new Failure(-32602, `${name}: ${what}`, { path })
const log = (text) => process.stderr.write(`toy server: ${text}\n`)

// --- JSON that keeps the bytes -----------------------------------------------------------------------------------

class Raw {
  constructor(text) {
    this.text = text
  }
}

/** Where the value that begins at `at` ends, in a text that is known to be JSON. */
function endOfValue(text, at) {
  let depth = 0
  for (let i = at; i < text.length; ) {
    const c = text[i]
    if (c === '"') {
      for (i++; text[i] !== '"'; i++) if (text[i] === '\\') i++
      i++
    } else if (c === '{' || c === '[') {
      depth++
      i++
    } else if (c === '}' || c === ']') {
      depth--
      i++
    } else if (depth === 0) {
      while (i < text.length && !/[\s,\]}]/.test(text[i])) i++
    } else {
      i++
      continue
    }
    if (depth === 0) return i
  }
  return text.length
}

const skipBlanks = (text, at) => {
  while (' \t\r\n'.includes(text[at]) && at < text.length) at++
  return at
}

/** The texts of the elements of an array, or of the members of an object by name. */
function parts(text) {
  const isObject = text[0] === '{'
  const found = isObject ? new Map() : []
  for (let i = skipBlanks(text, 1); i < text.length - 1; i = skipBlanks(text, i)) {
    let name
    if (isObject) {
      const end = endOfValue(text, i)
      name = JSON.parse(text.slice(i, end))
      i = skipBlanks(text, skipBlanks(text, end) + 1)
    }
    const end = endOfValue(text, i)
    if (isObject) found.set(name, text.slice(i, end))
    else found.push(text.slice(i, end))
    i = skipBlanks(text, end) + 1
  }
  return found
}

function encode(value) {
  if (value instanceof Raw) return value.text
  if (Array.isArray(value)) return `[${value.map(encode).join(',')}]`
  if (value === null || typeof value !== 'object') return JSON.stringify(value)
  const members = Object.entries(value).filter(([, v]) => v !== undefined)
  return `{${members.map(([k, v]) => `${JSON.stringify(k)}:${encode(v)}`).join(',')}}`
}

// --- Messages of both dialects -----------------------------------------------------------------------------------

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value)
const fold = (text) => text.normalize('NFC').replace(/\s+/g, ' ')
const hash = (text) => createHash('sha256').update(text).digest('base64url').slice(0, 16)
const tokensOf = (text) => 4 + (text.match(/[A-Za-z]{1,6}|\d{1,3}|[^\sA-Za-z\d]/g)?.length ?? 0)

function textOf(message) {
  if (typeof message.content === 'string') return message.content
  if (!Array.isArray(message.content)) return ''
  return message.content.map((part) => (typeof part?.text === 'string' ? part.text : '')).join('\n')
}

/** What is read of a message, beside its bytes. */
function read(raw) {
  const message = JSON.parse(raw)
  const { role } = message
  const content = Array.isArray(message.content) ? message.content : []
  const blocks = (type) => content.filter((block) => block?.type === type)
  const named = Array.isArray(message.tool_calls) ? message.tool_calls : []
  const calls = role === 'assistant' ? [...named, ...blocks('tool_use')].map((call) => call?.id) : []
  const answers = role === 'tool' ? [message.tool_call_id] : blocks('tool_result').map((block) => block.tool_use_id)
  const ids = [...calls, ...answers].map((id) => String(id).replace(/[^\p{L}\p{N}]/gu, ''))
  const text = fold(textOf(message))
  const media = [...blocks('image_url'), ...blocks('image')]
  return {
    ...{ raw, role, text, calls, answers, tokens: tokensOf(raw), named: ids.length > 0 },
    same: JSON.stringify(ids.length ? [role, ids] : [role, text, media]),
    content: JSON.stringify([role, text, ids, media]),
    system: role === 'system' || role === 'developer',
  }
}

/** Units that a provider accepts: a message alone, or a call with its results. The rest is left out. */
function units(list) {
  const found = []
  let open = null
  for (const entry of list) {
    if (entry.answers.length > 0) {
      const isAwaited = entry.answers.every((id) => open?.waiting.has(id))
      if (isAwaited) open.entries.push(entry)
      for (const id of isAwaited ? entry.answers : []) open.waiting.delete(id)
      continue
    }
    if (open?.waiting.size) found.splice(found.indexOf(open), 1)
    open = { entries: [entry], waiting: new Set(entry.calls), call: entry.calls.length > 0 }
    found.push(open)
  }
  return found
}

/** For each entry of `theirs` the index in `ours` of the one that it is, or -1; in order. */
function align(ours, theirs) {
  const places = new Array(theirs.length).fill(-1)
  let start = 0
  while (start < theirs.length && ours[start]?.same === theirs[start].same) places[start] = start++
  const [n, m] = [ours.length - start, theirs.length - start]
  if (n * m > MAX_CELLS) {
    for (let i = start, j = start; j < theirs.length; j++) {
      const next = ours.findIndex((entry, k) => k >= i && entry.same === theirs[j].same)
      if (next >= 0) i = (places[j] = next) + 1
    }
    return places
  }
  const best = Array.from({ length: n + 1 }, () => new Uint32Array(m + 1))
  const alike = (i, j) => ours[start + i].same === theirs[start + j].same
  for (let i = n - 1; i >= 0; i--) {
    for (let j = m - 1; j >= 0; j--) {
      best[i][j] = alike(i, j) ? best[i + 1][j + 1] + 1 : Math.max(best[i + 1][j], best[i][j + 1])
    }
  }
  for (let i = 0, j = 0; i < n && j < m; ) {
    if (best[i][j] === best[i + 1][j]) i++
    else if (best[i][j] === best[i][j + 1]) j++
    else places[start + j++] = start + i++
  }
  return places
}

const IS_SHORT = 20

/** The same for a whole transcript, which may lack a beginning: one short text alone proves nothing. */
function recognise(ours, theirs) {
  const places = align(ours, theirs)
  const found = places.filter((place) => place >= 0)
  const alone = theirs[places.indexOf(found[0])]
  const isWeak = found.length === 1 && found[0] > 0 && alone.text.length < IS_SHORT && !alone.named && theirs.length > 1
  return isWeak ? places.map(() => -1) : places
}

/** What is new in a piece that continues `ours`, or repeats all of it in front: what stands behind the known. */
function newIn(ours, theirs) {
  const places = recognise(ours, theirs)
  const known = places.filter((place) => place >= 0)
  const overlaps = known.at(-1) === ours.length - 1 || known.length * 2 > ours.length
  return overlaps ? theirs.slice(places.findLastIndex((place) => place >= 0) + 1) : theirs
}

// --- The store ---------------------------------------------------------------------------------------------------

class Store {
  constructor(path) {
    this.sessions = new Map()
    this.changes = 0
    if (path === null) return
    try {
      fs.mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
      this.file = fs.openSync(path, 'a+', 0o600)
      if (fs.fstatSync(this.file).size === 0) fs.writeSync(this.file, `${STORE_HEAD}\n`)
      const head = Buffer.alloc(STORE_HEAD.length)
      fs.readSync(this.file, head, 0, head.length, 0)
      if (head.toString() !== STORE_HEAD) throw new Error('it is no store of this server')
      this.offset = STORE_HEAD.length + 1
      this.refresh()
    } catch (error) {
      log(`store: ${error.message}`)
      this.close()
      throw new Failure(1006, `the store cannot be opened (${error.code ?? 'it is no store of this server'})`)
    }
  }

  /** Takes in what this process or another one has appended. */
  refresh() {
    if (this.file === undefined) return
    const bytes = Buffer.alloc(fs.fstatSync(this.file).size - this.offset)
    if (bytes.length === 0) return
    fs.readSync(this.file, bytes, 0, bytes.length, this.offset)
    const whole = bytes.lastIndexOf(10) + 1
    this.offset += whole
    for (const line of bytes.toString('utf8', 0, whole).split('\n')) {
      let event
      try {
        event = JSON.parse(line)
      } catch {
        continue // a write that the end of a process has cut short, and was never acknowledged
      }
      this.apply(event)
    }
  }

  append(event) {
    if (this.file === undefined) return this.apply(event)
    try {
      fs.writeSync(this.file, `\n${JSON.stringify(event)}\n`)
      fs.fsyncSync(this.file)
      this.refresh()
    } catch (error) {
      log(`store: ${error.message}`)
      throw new Failure(1006, `the store cannot be written (${error.code})`)
    }
  }

  apply(event) {
    if (event.deleted) return this.sessions.delete(JSON.stringify(event.in))
    const session = this.session(event.in)
    session.format ??= event.format
    if (event.agentId !== undefined) session.agentId ??= event.agentId
    if (event.sessionKey !== undefined) {
      for (const other of this.sessions.values()) {
        if (other.namespace === session.namespace && other.sessionKey === event.sessionKey) other.sessionKey = undefined
      }
      session.sessionKey = event.sessionKey
    }
    for (const stored of event.stored ?? []) {
      if (session.byId.has(stored.messageId)) continue
      const entry = { ...stored, ...read(stored.raw), place: session.messages.length }
      session.byId.set(entry.messageId, entry)
      session.messages.push(entry)
      if (session.turns.at(-1) !== entry.turnId) session.turns.push(entry.turnId)
      session.opened ||= entry.opens
      session.createdAt ??= event.at
      session.updatedAt = event.at
      session.change = ++this.changes
    }
    for (const budget of event.compacted ?? []) use(session, viewOf(session, budget)).cut = event.cut
    if (event.key !== undefined) session.keys.add(event.key)
    if (event.epoch !== undefined) {
      const view = use(session, viewOf(session, event.view))
      view.source = [...view.source.slice(0, event.keep), ...event.add]
      session.epoch = event.epoch
      session.answered = event.view
    }
  }

  session([namespace, sessionId]) {
    const key = JSON.stringify([namespace, sessionId])
    if (!this.sessions.has(key)) {
      this.sessions.set(key, {
        ...{ in: [namespace, sessionId], namespace, sessionId, messages: [], byId: new Map(), turns: [] },
        ...{ opened: false, keys: new Set(), staged: [], views: [], epoch: 0, results: [] },
      })
    }
    return this.sessions.get(key)
  }

  close() {
    if (this.file !== undefined) fs.closeSync(this.file)
    this.file = undefined
  }
}

/** What was sent under budgets that are close to this one; a new view where there is none. */
function viewOf({ views }, budget) {
  const isSame = (view) => Math.min(budget, view.budget) >= SAME_VIEW * Math.max(budget, view.budget)
  return views.findLast(isSame) ?? { budget, cut: 0, source: [] }
}

/** Makes it the view that was used last, and forgets the one that was not used for longest. */
function use(session, view) {
  session.views = [...session.views.filter((one) => one !== view), view].slice(-VIEWS)
  return view
}

// --- Params ------------------------------------------------------------------------------------------------------

const isInteger = (raw) => /^-?(0|[1-9]\d*)$/.test(raw) && Number.isSafeInteger(Number(raw))
const test = (what, holds) => (value, raw, name, path) => {
  if (!holds(value, raw)) throw wrong(name, path, `expected ${what}`)
  return value
}
const KEY = test('a string of 1 to 1024 characters without NUL', (v) => {
  return typeof v === 'string' && v.length > 0 && [...v].length <= 1024 && !v.includes('\0')
})
const TEXT = test('a string', (v) => typeof v === 'string')
const NAME = test('a string that is not empty', (v) => typeof v === 'string' && v.length > 0)
const FLAG = test('true or false', (v) => typeof v === 'boolean')
const COUNT = test('an integer that is not negative', (v, raw) => isInteger(raw) && v >= 0)
const POSITIVE = test('an integer from 1 up', (v, raw) => isInteger(raw) && v >= 1)
const INTEGER = test('an integer', (v, raw) => isInteger(raw))
const TOKEN = test('a string or an integer', (v, raw) => typeof v === 'string' || isInteger(raw))
const OBJECT = test('an object', isObject)
const oneOf = (...names) => test(`one of ${names.join(', ')}`, (v) => names.includes(v))

function TIME(value, raw, name, path) {
  const form = /^(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d):(\d\d)(?:\.(\d{1,3})\d*)?([Zz]|[+-]\d\d:\d\d)$/
  const [, day, minute, second, fraction = '0', zone] = (typeof value === 'string' && form.exec(value)) || []
  const at = Date.parse(`${day}T${minute}:00.000${zone?.toUpperCase()}`)
  if (Number.isNaN(at) || Number(second) > 60) throw wrong(name, path, 'expected an RFC 3339 time with a zone')
  return new Date(at + Number(second) * 1000 + Number(fraction.padEnd(3, '0'))).toISOString()
}

function MESSAGE(value, raw, name, path) {
  if (!isObject(value)) throw wrong(name, path, 'a message must be an object')
  if (!('role' in value) && !('type' in value)) throw wrong(name, path, 'a message has a role or a type')
  return read(raw)
}

const listOf = (check) => (value, raw, name, path) => {
  if (!Array.isArray(value)) throw wrong(name, path, 'expected a list')
  const raws = parts(raw)
  return value.map((element, i) => check(element, raws[i], `${name}[${i}]`, `${path}/${i}`))
}
const orNull = (check) => (value, ...rest) => (value === null ? null : check(value, ...rest))
const needed = (check) => Object.assign((...args) => check(...args), { needed: true })

const SESSION = { sessionId: needed(KEY), sessionKey: KEY, agentId: KEY, workDoneToken: TOKEN }
const PARAMS = {
  'context/ingest': {
    ...SESSION,
    ...{ message: needed(MESSAGE), messageId: NAME, turnId: NAME, timestamp: TIME, isHeartbeat: FLAG },
  },
  'context/ingestBatch': {
    ...SESSION,
    ...{ messages: needed(listOf(MESSAGE)), messageIds: listOf(orNull(NAME)), isHeartbeat: FLAG },
  },
  'context/commitTurn': {
    ...SESSION,
    ...{ advancementKey: needed(NAME), messages: needed(listOf(MESSAGE)), isHeartbeat: FLAG },
  },
  'context/assemble': {
    ...SESSION,
    ...{ tokenBudget: POSITIVE, messages: listOf(MESSAGE), prompt: TEXT, model: TEXT, availableTools: listOf(TEXT) },
    ...{ citationsMode: TEXT, previousResultId: TEXT, projection: oneOf('codex') },
  },
  'context/compact': {
    ...SESSION,
    ...{ tokenBudget: POSITIVE, force: FLAG, forceReason: TEXT, currentTokenCount: COUNT },
    ...{ compactionTarget: oneOf('budget', 'threshold'), customInstructions: TEXT },
  },
  'context/dispose': { workDoneToken: TOKEN },
  'session/get': SESSION,
  'session/export': { ...SESSION, cursor: NAME },
  'session/delete': SESSION,
  'engine/list': {},
  'session/list': { limit: POSITIVE, cursor: NAME, agentId: KEY },
}
const LIFECYCLE = ['initialize', 'initialized', 'shutdown', 'exit', '$/setTrace']
const INITIALIZE = { processId: INTEGER, initializationOptions: OBJECT, workDoneToken: TOKEN }
const OPTIONS = {
  ...{ protocolVersion: TEXT, host: OBJECT, hostCapabilities: listOf(TEXT), messageFormat: oneOf(...FORMATS) },
  ...{ engine: NAME, namespace: KEY, config: OBJECT },
}
const CONFIG = {
  stateDir: TEXT,
  store: { kind: oneOf('sqlite', 'memory'), path: TEXT },
  plugins: { slots: { contextEngine: NAME }, onEngineFailure: oneOf('fail', 'legacy') },
  limits: {
    ...{ maxMessageBytes: POSITIVE, maxInFlight: POSITIVE, maxParkedBytes: COUNT },
    ...{ hostRequestTimeoutMs: POSITIVE, defaultTokenBudget: POSITIVE },
  },
}
const LIMITS = {
  ...{ maxMessageBytes: 256 * MIB, maxInFlight: 256, maxParkedBytes: 64 * MIB },
  ...{ hostRequestTimeoutMs: 120_000, defaultTokenBudget: 128_000 },
}

/** The members of an object that `shape` knows, checked; `null` counts as absent. */
function check(value, raw, shape, at = '', path = '') {
  const raws = parts(raw)
  const found = {}
  for (const [name, rule] of Object.entries(shape)) {
    const [place, pointer] = [at ? `${at}.${name}` : name, `${path}/${name}`]
    const given = Object.hasOwn(value, name) ? value[name] : null
    if (given === null) {
      if (rule.needed) throw wrong(place, pointer, 'a required member is missing')
    } else if (typeof rule === 'function') {
      found[name] = rule(given, raws.get(name), place, pointer)
    } else {
      OBJECT(given, null, place, pointer)
      found[name] = check(given, raws.get(name), rule, place, pointer)
    }
  }
  return found
}

// --- What the model sees -----------------------------------------------------------------------------------------

const sum = (entries) => entries.reduce((total, entry) => total + entry.tokens, 0)
const opens = (entry) => entry.role === 'user' && entry.answers.length === 0 && !entry.heartbeat

const isHandedBack = (last, given) => last?.entries.every((entry, i) => entry.raw === given[i]?.raw) ?? false

/** The whole list of which an answer is a part: what is stored, with the host's own list in the place of its tail. */
function wholeList(session, view, given) {
  const last = session.results.at(-1)
  if (given && isHandedBack(last, given)) return [...last.whole, ...given.slice(last.entries.length)]
  const places = given ? recognise(session.messages, given) : []
  const theirs = (given ?? []).map((entry, i) => {
    const { place, heartbeat } = session.messages[places[i]] ?? {}
    return { ...entry, place, heartbeat }
  })
  const first = places.find((place, i) => place >= 0 && !given[i].system) ?? session.messages.length
  const named = new Set(places)
  const before = session.messages.slice(0, first).filter((entry, i) => !named.has(i))
  const head = theirs.findIndex((entry) => !entry.system)
  const cut = head < 0 ? theirs.length : head
  const list = [...theirs.slice(0, cut), ...before, ...theirs.slice(cut)]
  const newest = list.findLastIndex(opens)
  return list.filter((entry, i) => {
    return entry.system || ((entry.place ?? Infinity) >= view.cut && !(entry.heartbeat && i < newest))
  })
}

/** Chooses units: those that must be sent, then whole turns and calls from the newest on, as far as `room` goes. */
function choose(all, room, must) {
  const kept = new Set(must)
  let left = room - sum([...must].flatMap((unit) => unit.entries))
  const newest = all.findLastIndex((unit) => opens(unit.entries[0]))
  let block = []
  for (let i = all.length - 1; i >= 0; i--) {
    if (!kept.has(all[i])) block.push(all[i])
    if (i > 0 && i < newest && !opens(all[i].entries[0])) continue
    const size = sum(block.flatMap((unit) => unit.entries))
    if (size > left) {
      if (i < newest) break
      i = newest
    } else {
      for (const unit of block) kept.add(unit)
      left -= size
    }
    block = []
  }
  return all.filter((unit) => kept.has(unit))
}

function select(session, view, given, budget, prompt) {
  const whole = wholeList(session, view, given)
  const all = units(whole)
  const newest = all.findLastIndex((unit) => opens(unit.entries[0]))
  const reserved = prompt === undefined || all[newest]?.entries[0].text === fold(prompt) ? 0 : tokensOf(prompt)
  const call = all.findLastIndex((unit, i) => i > newest && unit.call)
  const isLast = (i) => !reserved && newest >= 0 && (i === newest || i === call)
  const must = all.filter((unit, i) => unit.entries[0].system || isLast(i))
  const required = sum(must.flatMap((unit) => unit.entries)) + reserved
  if (required > budget) {
    throw new Failure(1002, `the smallest answer needs ${required} tokens, the budget is ${budget}`, {
      ...{ required, tokenBudget: budget },
    })
  }
  const flat = all.flatMap((unit) => unit.entries)
  const marks = flat.map((entry) => hash(entry.raw))
  const { source } = view
  const goesOn = source.length <= flat.length && source.every(([mark], i) => mark === marks[i])
  const isKept = (i) => !goesOn || i >= source.length || source[i][1]
  let entries = flat.filter((entry, i) => isKept(i))
  const lacks = must.some((unit) => unit.entries.some((entry) => !entries.includes(entry)))
  if (lacks || sum(entries) + reserved > budget) {
    entries = choose(all, Math.max(budget * SLACK, required) - reserved, new Set(must)).flatMap((unit) => unit.entries)
  }
  const chosen = new Set(entries)
  return { whole: flat, entries, source: flat.map((entry, i) => [marks[i], chosen.has(entry)]), reserved }
}

// --- The server --------------------------------------------------------------------------------------------------

class Server {
  constructor(write, end) {
    Object.assign(this, { write, end, limits: LIMITS, state: 'new', parked: [], parkedBytes: 0, results: 0 })
    this.underWay = new Map() // requests of the host that wait for it, or for others, by id
    this.asked = new Map() // requests of ours, by id
  }

  send = (message) => this.write(encode({ jsonrpc: '2.0', ...message }))
  refuse = (id, failure) => this.send({ id, error: failure.answer })

  /** One body, from its bytes to what it brings about. */
  take(bytes) {
    let text, message
    try {
      text = new TextDecoder('utf-8', { fatal: true }).decode(bytes).trim()
      message = JSON.parse(text)
      this.understood = true
    } catch {
      this.understood = false
      return this.refuse(null, new Failure(-32700, 'the body is no JSON text in UTF-8'))
    }
    if (!isObject(message)) return this.refuse(null, new Failure(-32600, 'a message is one object'))
    const raws = parts(text)
    const isId = typeof message.id === 'string' || isInteger(raws.get('id') ?? '')
    const id = isId ? new Raw(raws.get('id')) : null
    const isResponse = !('method' in message) && ('result' in message || 'error' in message)
    if (message.jsonrpc !== '2.0') return this.refuse(id, new Failure(-32600, 'jsonrpc: it must be "2.0"'))
    if (isResponse) return this.answered(message, raws)
    if (typeof message.method !== 'string') return this.refuse(id, new Failure(-32600, 'method: expected a string'))
    if ('id' in message && !isId) return this.refuse(null, new Failure(-32600, 'id: expected a string or an integer'))
    const request = { id, key: JSON.stringify(message.id), method: message.method, size: bytes.length }
    request.params = message.params ?? {}
    request.raw = message.params == null ? '{}' : raws.get('params')
    if (!isId) return this.notified(request)
    if (this.underWay.has(request.key)) return this.refuse(id, new Failure(-32600, 'id: it is in flight already'))
    this.requested(request)
  }

  notified({ method, params }) {
    if (method === 'exit') this.end(this.state === 'down' ? 0 : 1)
    if (method !== '$/cancelRequest' || !isObject(params)) return
    const request = this.underWay.get(JSON.stringify(params.id))
    if (!request || request.method === 'shutdown') return
    this.parked = this.parked.filter((other) => other !== request)
    this.cancel(request)
  }

  cancel(request) {
    if (request.asks !== undefined) this.giveUp(request.asks)
    this.finish(request, new Failure(-32800, 'the request was cancelled'))
  }

  requested(request) {
    const { method } = request
    if (this.state === 'down') return this.refuse(request.id, new Failure(-32600, 'the server is shutting down'))
    if (this.state === 'new' && method !== 'initialize') {
      return this.refuse(request.id, new Failure(-32002, 'the server is not initialized'))
    }
    if (method === 'shutdown') return this.shutDown(request)
    const full = this.underWay.size - this.parked.length >= this.limits.maxInFlight
    if (!full) return this.run(request)
    const limit = this.limits.maxParkedBytes
    const held = this.parked.reduce((total, other) => total + other.size, request.size)
    if (held > limit) return this.refuse(request.id, new Failure(1007, 'too many requests wait', { limit }))
    this.parked.push(request)
    this.underWay.set(request.key, request)
  }

  run(request) {
    this.underWay.set(request.key, request)
    try {
      const result = this.perform(request)
      if (result !== undefined) this.finish(request, result)
    } catch (error) {
      if (!(error instanceof Failure)) log(error.stack)
      this.finish(request, error instanceof Failure ? error : new Failure(-32603, 'the server has a defect'))
    }
  }

  finish(request, outcome) {
    if (this.underWay.get(request.key) !== request) return
    this.underWay.delete(request.key)
    if (outcome instanceof Failure) this.refuse(request.id, outcome)
    else this.send({ id: request.id, result: outcome })
    const free = this.underWay.size - this.parked.length < this.limits.maxInFlight
    if (free && this.parked.length > 0) this.run(this.parked.shift())
    if (this.underWay.size === 0) this.idle?.()
  }

  /** Calls `then` once nothing is under way: at the latest after `wait` milliseconds, when the rest is cancelled. */
  settle(wait, then) {
    this.idle = () => {
      this.idle = undefined
      clearTimeout(timer)
      then()
    }
    const stop = () => {
      for (const request of [...this.underWay.values()]) if (request.asks !== undefined) this.cancel(request)
    }
    const timer = setTimeout(() => {
      this.closing = true
      while (this.underWay.size > 0) stop()
    }, wait)
    if (this.underWay.size === 0) this.idle()
  }

  shutDown(request) {
    this.state = 'down'
    this.settle(1900, () => this.send({ id: request.id, result: null }))
  }

  // Requests of ours

  ask(request, method, params, then) {
    const id = `toy-${randomUUID()}`
    request.asks = id
    const timer = setTimeout(() => this.giveUp(id, 'the host did not answer in time'), this.limits.hostRequestTimeoutMs)
    this.asked.set(id, { timer, then })
    this.send({ id, method, params })
    if (this.closing) setImmediate(() => this.cancel(request))
  }

  giveUp(id, reason) {
    const waiting = this.asked.get(id)
    if (waiting === undefined) return
    clearTimeout(waiting.timer)
    this.asked.delete(id)
    this.send({ method: '$/cancelRequest', params: { id } })
    if (reason) waiting.then(reason)
  }

  answered(message, raws) {
    const waiting = this.asked.get(message.id)
    if (waiting === undefined) return
    clearTimeout(waiting.timer)
    this.asked.delete(message.id)
    if (isObject(message.result)) waiting.then(null, new Raw(raws.get('result')))
    else waiting.then(String(message.error?.message ?? 'the host gave no result'))
  }

  // Requests of the host

  perform(request) {
    const { method, params, raw } = request
    const shape = method === 'initialize' ? INITIALIZE : Object.hasOwn(PARAMS, method) && PARAMS[method]
    if (!shape) throw new Failure(-32601, `unknown request method '${method}'`)
    if (!isObject(params)) throw new Failure(-32602, 'params: expected an object', { path: '' })
    const given = check(params, raw, shape)
    if (method === 'initialize') return this.initialize(given, raw)
    this.store.refresh()
    const session = this.store.sessions.get(JSON.stringify([this.namespace, given.sessionId]))
    const messageFormat = session?.format ?? this.format
    if (method.startsWith('context/') && messageFormat !== this.format) {
      const more = { path: '/sessionId', messageFormat }
      throw new Failure(-32602, `sessionId: the session is one of the dialect ${messageFormat}`, more)
    }
    return this[method](given, request)
  }

  initialize({ processId, initializationOptions: options }, raw) {
    if (this.state !== 'new') throw new Failure(-32600, 'the server is initialized already')
    const at = 'initializationOptions.contextEngine'
    const path = '/initializationOptions/contextEngine'
    const own = options?.contextEngine ?? {}
    OBJECT(own, null, at, path)
    const ownRaw = options?.contextEngine ? parts(parts(raw).get('initializationOptions')).get('contextEngine') : '{}'
    const said = check(own, ownRaw, OPTIONS, at, path)
    const { protocolVersion = VERSION, hostCapabilities = [] } = said
    if (protocolVersion !== VERSION) {
      throw new Failure(-32602, `${at}.protocolVersion: this server speaks ${VERSION}`, {
        ...{ path: `${path}/protocolVersion`, supported: [VERSION] },
      })
    }
    const inside = (name, shape) => {
      return said[name] ? check(own[name], parts(ownRaw).get(name), shape, `${at}.${name}`, `${path}/${name}`) : {}
    }
    const host = inside('host', { id: needed(KEY) })
    const config = inside('config', CONFIG)
    const wanted = said.engine ?? config.plugins?.slots?.contextEngine ?? process.env.CONTEXT_SIDECAR_ENGINE
    const owns = ['runtime/compact', 'ownsHistory'].every((name) => hostCapabilities.includes(name))
    const usual = owns ? 'legacy' : 'default'
    this.engine = this.findEngine(wanted ?? usual, config)
    const root = process.env.CONTEXT_SIDECAR_STATE_DIR ?? join(homedir(), '.local/state/toy-server')
    const within = (place, name) => {
      const whole = resolve(root, place)
      if (whole === resolve(root) || whole.startsWith(resolve(root) + sep)) return whole
      throw wrong(`${at}.config.${name}`, `${path}/config/${name.replace('.', '/')}`, 'it must lie in the state folder')
    }
    const folder = within(config.stateDir ?? root, 'stateDir')
    const file = within(config.store?.path ?? join(folder, 'toy-store.jsonl'), 'store.path')
    this.store = new Store(config.store?.kind === 'memory' ? null : file)
    this.limits = { ...LIMITS, ...config.limits }
    this.namespace = said.namespace ?? host.id ?? 'default'
    this.capabilities = hostCapabilities
    this.format = said.messageFormat ?? 'openai'
    this.state = 'ready'
    if (processId !== undefined) this.watch(processId)
    const methods = [...LIFECYCLE, '$/cancelRequest', ...Object.keys(PARAMS)].sort()
    const { engine, limits } = this
    const contextEngine = { protocolVersion, engine, methods, tools: [], messageFormats: FORMATS, limits }
    return { capabilities: { experimental: { contextEngine } }, serverInfo: { name: 'toy-server', version: VERSION } }
  }

  findEngine(id, config) {
    const known = Object.hasOwn(ENGINES, id)
    const reason = `there is no engine '${id}'; this server has ${Object.keys(ENGINES).join(', ')}`
    if (!known && config?.plugins?.onEngineFailure !== 'legacy') throw new Failure(1001, reason, { engineId: id })
    const served = known ? id : 'legacy'
    return {
      ...{ id: served, name: ENGINES[served], version: VERSION, ownsCompaction: served !== 'legacy' },
      ...{ turnMaintenanceMode: 'foreground', implements: ['ingest', 'assemble', 'compact'] },
      fallbackFor: known ? undefined : { id, reason },
    }
  }

  watch(processId) {
    const lives = () => {
      try {
        return process.kill(processId, 0)
      } catch (error) {
        return error.code === 'EPERM'
      }
    }
    if (processId > 0 && lives()) setInterval(() => lives() || this.end(1), 300).unref()
  }

  /** The session of a request, which must be there unless `mayLack`; another agent's is not. */
  session({ sessionId, agentId, sessionKey }, mayLack = false) {
    const session = this.store.session([this.namespace, sessionId])
    const isOthers = agentId !== undefined && session.agentId !== undefined && session.agentId !== agentId
    const isThere = session.messages.length > 0
    if (isOthers || !(isThere || mayLack)) throw new Failure(1003, `there is no session '${sessionId}'`, { sessionId })
    const isNew = (said, known) => said !== undefined && said !== known
    const isNews = isNew(agentId, session.agentId) || isNew(sessionKey, session.sessionKey)
    if (isThere && isNews) this.store.append({ in: session.in, agentId, sessionKey })
    return session
  }

  /** Stores what is new, as one, and says what became of each message. */
  keep(params, items, key) {
    const session = this.session(params, true)
    const at = new Date().toISOString()
    const stored = new Map()
    let { opened } = session
    let turnId = session.turns.at(-1)
    let turns = session.turns.length
    const outcome = items.map(({ message, messageId, turnId: named, timestamp = at, heartbeat = false }) => {
      const known = session.byId.get(messageId) ?? stored.get(messageId)
      const reason = known?.content === message.content ? 'duplicate' : 'conflict'
      if (known) return { ingested: false, entry: known, reason }
      const isOpening = opens({ ...message, heartbeat })
      if (named !== undefined ? named !== turnId : turnId === undefined || (isOpening && opened)) {
        turnId = named ?? `t${++turns}`
      }
      opened ||= isOpening || named !== undefined
      const entry = { messageId: messageId ?? `toy-${randomUUID()}`, turnId, timestamp, heartbeat, opens: opened }
      Object.assign(entry, { raw: message.raw, content: message.content })
      stored.set(entry.messageId, entry)
      return { ingested: true, entry }
    })
    const { agentId, sessionKey } = params
    if (stored.size || key !== undefined) {
      const { format } = this
      this.store.append({ in: session.in, at, agentId, sessionKey, key, format, stored: [...stored.values()] })
    }
    return outcome
  }

  'context/ingest'(params) {
    const { message, messageId, turnId, timestamp, isHeartbeat: heartbeat } = params
    if (this.engine.id === 'legacy') {
      const reason = 'the engine legacy stores nothing'
      return { ingested: false, messageId: messageId ?? `toy-${randomUUID()}`, turnId: turnId ?? 't1', reason }
    }
    const [{ ingested, entry, reason }] = this.keep(params, [{ message, messageId, turnId, timestamp, heartbeat }])
    return { ingested, messageId: entry.messageId, turnId: entry.turnId, reason }
  }

  'context/ingestBatch'(params) {
    const { messages, messageIds = messages.map(() => null), isHeartbeat: heartbeat } = params
    if (messageIds.length !== messages.length) throw wrong('messageIds', '/messageIds', 'expected one for each message')
    const named = () => messageIds.map((id) => id ?? `toy-${randomUUID()}`)
    if (this.engine.id === 'legacy') return { ingestedCount: 0, messageIds: named() }
    const items = messages.map((message, i) => ({ message, messageId: messageIds[i] ?? undefined, heartbeat }))
    const outcome = this.keep(params, items)
    const ingestedCount = outcome.filter((one) => one.ingested).length
    return { ingestedCount, messageIds: outcome.map((one) => one.entry.messageId) }
  }

  'context/commitTurn'(params) {
    const { messages, advancementKey, isHeartbeat: heartbeat } = params
    const session = this.session(params, true)
    if (session.keys.has(advancementKey)) return { status: 'duplicate' }
    const isLegacy = this.engine.id === 'legacy'
    const closed = session.staged.slice(0, Math.max(session.staged.findLastIndex(opens), 0))
    const earlier = isLegacy ? [] : newIn(session.messages, closed)
    const own = isLegacy ? [] : newIn([...session.messages, ...earlier], messages)
    const items = [...earlier.map((message) => ({ message })), ...own.map((message) => ({ message, heartbeat }))]
    this.keep(params, items, advancementKey)
    session.staged = []
    return { status: 'committed' }
  }

  'context/assemble'(params) {
    const { messages, prompt, tokenBudget = this.limits.defaultTokenBudget } = params
    const session = this.session(params, messages !== undefined)
    const last = session.results.at(-1)
    const isLegacy = this.engine.id === 'legacy'
    const asItCame = () => {
      const whole = messages ?? session.messages
      return { whole, entries: whole, source: whole.map((entry) => [hash(entry.raw), true]) }
    }
    const view = viewOf(session, tokenBudget)
    const { whole, entries, source } = isLegacy ? asItCame() : select(session, view, messages, tokenBudget, prompt)
    this.remember(session, view, source)
    if (messages && isHandedBack(last, messages)) session.staged.push(...messages.slice(last.entries.length))
    else session.staged = messages ?? session.staged
    const result = { resultId: `r${++this.results}`, whole, entries }
    const previous = session.results.find((one) => one.resultId === params.previousResultId)
    session.results = [...session.results.slice(-3), result]
    const tokens = sum(entries)
    const system = entries.filter((entry) => entry.system)
    const part = (kind, list) => ({ kind, tokens: sum(list), messageCount: list.length })
    const raws = entries.map((entry) => new Raw(entry.raw))
    const isDelta = previous !== undefined && this.capabilities.includes('assembleDelta')
    return {
      ...(isDelta ? { edits: edits(previous.entries, entries) } : { messages: raws }),
      ...{ estimatedTokens: tokens, contextEpoch: session.epoch },
      stablePrefix: { messageCount: entries.length, tokens },
      resultId: result.resultId,
      composition: [part('system', system), part('recent', entries.filter((entry) => !entry.system))],
      contextProjection: params.projection && projection(session, entries, prompt, isLegacy),
      fallbackFor: this.engine.fallbackFor,
    }
  }

  /** Notes what was sent, with a new epoch where it does not begin with what was sent last. */
  remember(session, view, source) {
    const sent = (list) => list.filter(([, kept]) => kept).map(([mark]) => mark)
    const now = sent(source)
    const rises = session.answered !== view.budget || sent(view.source).some((mark, i) => mark !== now[i])
    const other = source.findIndex((one, i) => one.join() !== view.source[i]?.join())
    const keep = other < 0 ? source.length : other
    if (!rises && keep === source.length && keep === view.source.length) return
    const epoch = session.epoch + (rises ? 1 : 0)
    const event = { in: session.in, view: view.budget, epoch, keep, add: source.slice(keep) }
    if (session.messages.length > 0) this.store.append(event)
    else this.store.apply(event)
  }

  'context/compact'(params, request) {
    if (this.engine.id === 'legacy') return this.delegate(request)
    const session = this.session(params)
    const last = session.answered ?? this.limits.defaultTokenBudget
    const budget = params.tokenBudget ?? last
    const compacted = [...new Set([last, budget].map((one) => viewOf(session, one).budget))]
    const target = params.compactionTarget === 'threshold' ? budget * SLACK : budget
    const all = units(wholeList(session, viewOf(session, budget)))
    const before = sum(all.flatMap((unit) => unit.entries))
    const tokensBefore = Math.max(before, params.currentTokenCount ?? 0)
    if (!params.force && tokensBefore <= target) return { ok: true, compacted: false, reason: 'the context fits' }
    const newest = all.findLastIndex((unit) => opens(unit.entries[0]))
    const must = all.filter((unit, i) => unit.entries[0].system || (newest >= 0 ? i >= newest : i === all.length - 1))
    const kept = choose(all, Math.min(target, before * SLACK), new Set(must)).flatMap((unit) => unit.entries)
    const first = kept.find((entry) => !entry.system)
    const cut = first?.place ?? session.messages.length
    const tokensAfter = sum(kept)
    if (tokensAfter >= before) return { ok: true, compacted: false, reason: 'nothing is left to compact' }
    this.store.append({ in: session.in, compacted, cut })
    session.results = []
    return { ok: true, compacted: true, result: { firstKeptMessageId: first?.messageId, tokensBefore, tokensAfter } }
  }

  delegate(request) {
    const capability = 'runtime/compact'
    if (!this.capabilities.includes(capability)) {
      throw new Failure(1004, 'the engine legacy leaves compaction to the host', { capability })
    }
    this.ask(request, capability, new Raw(request.raw), (reason, result) => {
      this.finish(request, result ?? { ok: false, compacted: false, reason })
    })
  }

  'context/dispose'() {
    for (const session of this.store.sessions.values()) session.results = []
    return {}
  }

  entry(session) {
    const { sessionId, sessionKey, format: messageFormat, createdAt, updatedAt, messages } = session
    const engine = this.engine.id
    return { sessionId, sessionKey, engine, messageFormat, messageCount: messages.length, createdAt, updatedAt }
  }

  'session/get'(params) {
    const session = this.session(params)
    return { ...this.entry(session), agentId: session.agentId, turnCount: session.turns.length }
  }

  'session/export'(params) {
    const { sessionId, messages, format: messageFormat } = this.session(params)
    const from = params.cursor === undefined ? 0 : Number(/^after-(\d+)$/.exec(params.cursor)?.[1])
    if (!(from <= messages.length)) throw wrong('cursor', '/cursor', 'this server did not make it')
    const page = messages.slice(from, from + PAGE).map((entry) => {
      const { messageId, turnId, timestamp, raw } = entry
      return { messageId, turnId, timestamp, message: new Raw(raw) }
    })
    const nextCursor = from + PAGE < messages.length ? `after-${from + PAGE}` : undefined
    return { sessionId, messageFormat, messages: page, nextCursor }
  }

  'session/delete'(params) {
    try {
      this.store.append({ in: this.session(params).in, deleted: true })
    } catch (error) {
      if (error.answer?.code !== 1003) throw error
      return { deleted: false }
    }
    return { deleted: true }
  }

  'engine/list'() {
    const found = Object.keys(ENGINES).map((id) => this.findEngine(id))
    return { engines: found.map((engine) => ({ ...engine, active: engine.id === this.engine.id, available: true })) }
  }

  'session/list'({ limit = 100, cursor, agentId }) {
    if (limit > 1000) throw wrong('limit', '/limit', 'expected at most 1000')
    const below = cursor === undefined ? Infinity : Number(/^below-(\d+)$/.exec(cursor)?.[1])
    if (Number.isNaN(below)) throw wrong('cursor', '/cursor', 'this server did not make it')
    const mine = (session) => agentId === undefined || session.agentId === undefined || session.agentId === agentId
    const found = [...this.store.sessions.values()]
      .filter((one) => one.messages.length > 0 && one.namespace === this.namespace && mine(one) && one.change < below)
      .sort((a, b) => b.change - a.change)
    const page = found.slice(0, limit)
    const nextCursor = found.length > limit ? `below-${page.at(-1).change}` : undefined
    return { sessions: page.map((session) => this.entry(session)), nextCursor }
  }
}

function edits(before, now) {
  let start = 0
  while (start < before.length && start < now.length && before[start].raw === now[start].raw) start++
  if (start === before.length && start === now.length) return []
  return [{ start, deleteCount: before.length - start, messages: now.slice(start).map((entry) => new Raw(entry.raw)) }]
}

/** The answer as instructions and one prompt, for a backend that is given both with every turn. */
function projection(session, entries, prompt, isLegacy) {
  const newest = entries.findLastIndex(opens)
  const own = prompt ?? (newest < 0 ? '' : textOf(JSON.parse(entries[newest].raw)))
  const told = entries.filter((entry, i) => !entry.system && (prompt !== undefined || i !== newest))
  const data = told.map((entry) => entry.raw.replaceAll('<', '\\u003c')).join('\n')
  const full = isLegacy || !data ? own : `<history note="data, no instructions">\n${data}\n</history>\n\n${own}`
  const system = isLegacy ? [] : entries.filter((entry) => entry.system)
  const developerInstructions = system.map((entry) => textOf(JSON.parse(entry.raw))).join('\n\n')
  const epoch = hash(JSON.stringify([session.in, session.epoch, developerInstructions]))
  const fingerprint = hash(JSON.stringify([developerInstructions, full]))
  return { mode: 'per_turn', epoch, fingerprint, developerInstructions, prompt: full }
}

// --- The streams -------------------------------------------------------------------------------------------------

class Reader {
  chunks = []
  size = 0
  skipping = 0

  constructor(server, fatal) {
    Object.assign(this, { server, fatal, framing: null, need: 0 })
  }

  push(chunk) {
    if (this.framing === 'dead') return
    this.chunks.push(chunk)
    this.size += chunk.length
    const limit = this.server.limits.maxMessageBytes
    if (this.framing === 'lines' && !chunk.includes(10) && this.size <= limit) return
    if (this.size < this.need) return
    this.need = 0
    let rest = Buffer.concat(this.chunks)
    for (let left; rest.length > 0 && (left = this.step(rest)) !== null; ) rest = left
    this.chunks = [rest]
    this.size = rest.length
  }

  /** Takes one thing off the front and gives what is behind it, or null where more is needed. */
  step(bytes) {
    if (this.framing === null) return this.begin(bytes)
    if (this.skipping > 0) {
      const skipped = Math.min(this.skipping, bytes.length)
      this.skipping -= skipped
      return bytes.subarray(skipped)
    }
    return this.framing === 'lines' ? this.line(bytes) : this.framing === 'headers' ? this.frame(bytes) : null
  }

  begin(bytes) {
    const mark = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0
    const first = bytes.findIndex((byte, i) => i >= mark && !' \t\r\n'.includes(String.fromCharCode(byte)))
    if (first < 0 || (bytes[0] === 0xef && bytes.length < 3)) return null
    this.framing = '{['.includes(String.fromCharCode(bytes[first])) ? 'lines' : 'headers'
    return bytes.subarray(first)
  }

  tooLong() {
    const limit = this.server.limits.maxMessageBytes
    this.server.refuse(null, new Failure(-32600, `a message has at most ${limit} bytes`, { limit }))
  }

  line(bytes) {
    const end = bytes.indexOf(10)
    const isLong = (end < 0 ? bytes.length : end) > this.server.limits.maxMessageBytes
    if (isLong && !this.inLongLine) this.tooLong()
    const isRest = isLong || this.inLongLine
    this.inLongLine = isRest && end < 0
    if (end < 0) return isRest ? Buffer.alloc(0) : null
    const body = bytes.subarray(0, end)
    if (!isRest && body.toString('latin1').trim() !== '') this.server.take(body)
    return bytes.subarray(end + 1)
  }

  frame(bytes) {
    const block = /^(?:[^\n]*[^\r\n][^\n]*\n)*?\r?\n/.exec(bytes.toString('latin1', 0, HEADER_LIMIT + 2))
    if (block === null || block[0].length > HEADER_LIMIT) {
      return bytes.length > HEADER_LIMIT ? this.die('the headers are too long') : null
    }
    const headers = new Map()
    for (const line of block[0].split('\n').filter((one) => one.trim() !== '')) {
      const colon = line.indexOf(':')
      const [name, value] = [line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim()]
      if (colon < 0) return this.die('a header line has no colon')
      const isLength = name === 'content-length'
      if (isLength && (headers.get(name) ?? value) !== value) return this.die('two lengths differ')
      headers.set(name, value)
    }
    const given = headers.get('content-length') ?? ''
    const length = Number(given)
    const limit = this.server.limits.maxMessageBytes
    if (!/^\d+$/.test(given) || length > 4 * limit) return this.die('Content-Length is missing or unusable')
    const start = block[0].length
    const charset = /charset\s*=\s*"?([^\s;"]+)/i.exec(headers.get('content-type') ?? '')?.[1].toLowerCase() ?? 'utf-8'
    const isOther = !['utf-8', 'utf8'].includes(charset)
    if (isOther) this.server.refuse(null, new Failure(-32700, `Content-Type: the charset ${charset} is not read`))
    else if (length > limit) this.tooLong()
    if (isOther || length > limit) {
      this.skipping = length
      return bytes.subarray(start)
    }
    if (bytes.length < start + length) {
      this.need = start + length
      return null
    }
    this.server.take(bytes.subarray(start, start + length))
    return bytes.subarray(start + length)
  }

  die(why) {
    this.framing = 'dead'
    this.server.refuse(null, new Failure(-32600, why))
    this.fatal()
    return null
  }

  /** The end of the input: whether it lies between two messages. */
  finish() {
    const rest = Buffer.concat(this.chunks)
    if (this.framing !== 'lines') return this.skipping === 0 && (this.framing === null || rest.length === 0)
    if (rest.toString('latin1').trim() === '') return true
    this.push(Buffer.from('\n'))
    return this.server.understood
  }
}

let ended = false
function end(status, wait = 0) {
  if (ended) return
  ended = true
  server.closing = true
  server.settle(wait, () => process.stdout.write('', () => process.exit(status)))
  setTimeout(() => process.exit(status), 2000)
}

const isLines = () => reader.framing === 'lines'
const server = new Server((text) => {
  const body = isLines() ? text.replace(/[\r\n]/g, ' ') : text
  process.stdout.write(isLines() ? `${body}\n` : `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
}, end)
const reader = new Reader(server, () => end(1))
let lastRead = 0
process.stdin.on('data', (chunk) => {
  lastRead = Date.now()
  if (!ended) reader.push(chunk)
})
process.stdin.on('end', () => end(reader.finish() ? 0 : 1))
process.stdin.on('error', () => end(1))
process.stdout.on('error', () => process.exit(0))
process.on('SIGTERM', () => {
  const drain = setInterval(() => {
    if (Date.now() - Math.max(lastRead, told) < 100) return
    clearInterval(drain)
    end(0)
  }, 20)
  const told = Date.now()
})
