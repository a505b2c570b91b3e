// @ts-check
// The upstream Acme has a dialect that no client speaks: its own body and events, an input count that includes cached tokens, and
// errors with status 200.
const { manifest } = require('tollgate/manifest');
const { defineAdapter, jsonInputOf, NotTranslatable, schemaOf } = require('tollgate/upstream');
const { usageOf } = require('tollgate/usage');

/**
 * @typedef {import('tollgate/upstream').AnswerEvent} AnswerEvent
 * @typedef {import('tollgate/upstream').AnswerReader} AnswerReader
 * @typedef {import('tollgate/upstream').FinishReason} FinishReason
 * @typedef {import('tollgate/upstream').Part} Part
 */

const WHO = { user: 'human', assistant: 'machine', system: 'rules' };

/** A call with one of these is not sent to Acme. */
const NO_PLACE = /** @type {const} */ (['isBegun', 'outputFormat', 'topP', 'frequencyPenalty', 'presencePenalty']);

/** @type {Readonly<Record<string, FinishReason>>} */
const REASONS = { done: 'end', length: 'length', tool: 'tool_calls' };

const adapter = defineAdapter({
  contract: 'upstream/1',
  name: 'example-dialect', // `adapter: example-dialect` in serviceEndpoints
  dialect: 'acme',
  schema: { type: 'object', properties: {} }, // the schema of `adapterSettings`

  request({ conversation, model }) {
    const { instructions, turns, tools, maxTokens, stream, temperature, stop, choices } = conversation;
    for (const name of NO_PLACE) if (conversation[name]) throw new NotTranslatable(name, 'has no place at Acme');
    if (stop.length > 0) throw new NotTranslatable('stop', 'has no place at Acme');
    if (choices > 1) throw new NotTranslatable('choices', 'is at most 1 at Acme');
    const { toolChoice = 'auto', parallelTools } = conversation;
    if (toolChoice !== 'auto') throw new NotTranslatable('toolChoice', 'is always auto at Acme');
    if (parallelTools === false && tools.length > 0) throw new NotTranslatable('parallelTools', 'has no place at Acme');
    const rules = instructions.map(({ text }) => ({ who: 'rules', words: text }));
    const said = turns.flatMap(({ role, parts }) => parts.flatMap((part) => write(WHO[role], part)));
    return {
      path: `/talk/${encodeURIComponent(model)}`,
      body: {
        say: [...rules, ...said],
        most: maxTokens,
        heat: temperature,
        live: stream,
        tools: tools.map((tool) => ({ title: tool.name, about: tool.description, form: schemaOf(tool) })),
      },
    };
  },

  authorize: (credential) => ({ 'acme-key': credential }),

  judge: ({ status }) => (status === 400 || status === 422 ? 'relay' : 'next'),

  answer: () => new AcmeReader(),

  readError: (body) => ({ message: textOf(objectOf(body)['trouble']) || 'Acme gives no reason.' }),
});

/**
 * @param {string} who
 * @param {Part} part
 * @returns {object[]}
 */
function write(who, part) {
  switch (part.kind) {
    case 'text':
      return [{ who, words: part.text }];
    case 'tool_call':
      return [{ who, use: part.name, ticket: part.id, form: JSON.parse(jsonInputOf(part)) }];
    case 'tool_result':
      return [{ who, ticket: part.id, words: part.parts.map(wordsOf).join('\n') }];
    case 'reasoning':
      return []; // reasoning is valid only at the upstream that signed it, and Acme signs none
    default:
      throw new NotTranslatable(part.kind, 'has no place at Acme');
  }
}

/** @param {Part} part */
function wordsOf(part) {
  if (part.kind !== 'text') throw new NotTranslatable(part.kind, 'has no place at Acme');
  return part.text;
}

/**
 * Reads the answer of one attempt. Parts are numbered in the order in which they open.
 * @implements {AnswerReader}
 */
class AcmeReader {
  #parts = 0;
  /** @type {number | undefined} the part number of the open text */
  #open;

  /**
   * @param {import('tollgate/upstream').SseEvent} event
   * @returns {AnswerEvent[]}
   */
  event({ data }) {
    return data === undefined ? [] : this.#read(objectOf(JSON.parse(data)));
  }

  /**
   * @param {unknown} body
   * @returns {AnswerEvent[]}
   */
  body(body) {
    const answer = objectOf(body);
    if (answer['trouble'] !== undefined) return this.#read({ ...answer, kind: 'trouble' });
    const uses = arrayOf(answer['uses']).map((use) => ({ ...objectOf(use), kind: 'use' }));
    const said = [{ kind: 'words', words: answer['words'] }, ...uses, { ...answer, kind: 'over' }];
    return said.flatMap((each) => this.#read(each));
  }

  end() {
    return this.#close();
  }

  /**
   * @param {Readonly<Record<string, unknown>>} event
   * @returns {AnswerEvent[]}
   */
  #read(event) {
    switch (event['kind']) {
      case 'words':
        return this.#say(textOf(event['words']));
      case 'use':
        return this.#use(event);
      case 'over':
        return this.#finish(event);
      case 'trouble':
        return [{ kind: 'error', error: { message: textOf(event['trouble']) } }];
      default:
        return []; // events that Acme may add
    }
  }

  /**
   * @param {string} text
   * @returns {AnswerEvent[]}
   */
  #say(text) {
    if (text === '') return [];
    if (this.#open !== undefined) return [{ kind: 'add', at: this.#open, text }];
    const at = this.#parts++;
    this.#open = at;
    return [
      { kind: 'open', at, choice: 0, part: { kind: 'text' } },
      { kind: 'add', at, text },
    ];
  }

  /**
   * @param {Readonly<Record<string, unknown>>} event
   * @returns {AnswerEvent[]}
   */
  #use({ ticket, use, form }) {
    const closed = this.#close();
    const at = this.#parts++;
    return [
      ...closed,
      { kind: 'open', at, choice: 0, part: { kind: 'tool_call', id: textOf(ticket), name: textOf(use) } },
      { kind: 'add', at, text: JSON.stringify(form ?? {}) },
      { kind: 'close', at },
    ];
  }

  /**
   * @param {Readonly<Record<string, unknown>>} event
   * @returns {AnswerEvent[]}
   */
  #finish({ why, counted }) {
    const { read, again, said } = objectOf(counted);
    const input = Number(read) - Number(again);
    return [
      ...this.#close(),
      { kind: 'finish', choice: 0, reason: REASONS[textOf(why)] ?? 'end' },
      { kind: 'usage', usage: usageOf({ input, cacheRead: Number(again), output: Number(said) }) },
      { kind: 'end' },
    ];
  }

  /** @returns {AnswerEvent[]} */
  #close() {
    const at = this.#open;
    this.#open = undefined;
    return at === undefined ? [] : [{ kind: 'close', at }];
  }
}

/**
 * Returns an empty object for any other value, because an upstream may send anything.
 * @param {unknown} value
 * @returns {Readonly<Record<string, unknown>>}
 */
function objectOf(value) {
  return typeof value === 'object' && value !== null ? /** @type {Readonly<Record<string, unknown>>} */ (value) : {};
}

/**
 * @param {unknown} value
 * @returns {readonly unknown[]}
 */
function arrayOf(value) {
  return Array.isArray(value) ? value : [];
}

/** @param {unknown} value */
function textOf(value) {
  return typeof value === 'string' ? value : '';
}

module.exports = { ...manifest({ adapters: [adapter] }), adapter };
