// @ts-check
const {
  AlreadyExists,
  Ambiguous,
  InstanceGone,
  NotSent,
  NotSupported,
  RateLimited,
  Rejected,
  TimedOut,
} = require('tollgate/supplier');

/** @typedef {import('tollgate/supplier').InstanceReference} Reference */
/** @typedef {{ id: string, name: string, tags: Record<string, string>, state: string, boot: string, createdAt: string }} Instance */

/** The timeout of a request: less than the 60 s that a method may take. */
const ANSWERS_WITHIN_MS = 30_000;

/** The errors after which nothing can have reached the supplier. */
const NEVER_CONNECTED = new Set(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'ENETUNREACH', 'EHOSTUNREACH']);

/** @type {Record<string, import('tollgate/supplier').InstanceState>} */
const STATES = { booting: 'starting', running: 'running', stopped: 'suspended', crashed: 'ended' };

class ExampleDriver {
  /** @type {import('tollgate/supplier').SupplierCapabilities} */
  capabilities = {
    uniqueName: true,
    ttl: 'none',
    suspend: 'filesystem',
    isolation: 'virtual-machine',
    exec: false,
    files: false,
    ports: false,
  };

  /** @param {string} url @param {string} token */
  constructor(url, token) {
    this.url = url;
    this.token = token;
  }

  /** @param {import('tollgate/supplier').InstanceSpec} spec @param {import('tollgate/supplier').CreateOptions} options */
  async create({ cpu, memoryGiB, settings }, { name, tags }) {
    const { template } = /** @type {{ template: string }} */ (settings);
    const { status, json } = await this.#ask('POST', '/instances', { name, tags, cpu, memoryGiB, template });
    const made = /** @type {Instance} */ (json);
    if (status !== 409) return referenceTo(made);
    // An instance with other tags belongs to another gateway.
    const isOurs = Object.entries(tags).every(([tag, value]) => made.tags[tag] === value);
    throw isOurs ? new AlreadyExists(referenceTo(made)) : new Rejected(`the name ${name} is taken`);
  }

  /** @param {Reference} reference @returns {Promise<import('tollgate/supplier').Inspection>} */
  async inspect({ id }) {
    const { status, json } = await this.#ask('GET', `/instances/${id}`);
    if (status === 404) return { kind: 'gone' };
    const instance = /** @type {Instance} */ (json);
    return { kind: 'found', ...summaryOf(instance), incarnation: instance.boot, endedAt: undefined };
  }

  /** @param {import('tollgate/supplier').Tags} tags */
  async *list(tags) {
    const query = new URLSearchParams(Object.entries(tags).map(([tag, value]) => ['tag', `${tag}=${value}`]));
    // A page that cannot be read throws, so a list that ends is complete.
    for (let after = ''; ; ) {
      const { json } = await this.#ask('GET', `/instances?${query}&after=${after}`);
      const { items, next } = /** @type {{ items: Instance[], next: string | null }} */ (json);
      yield* items.map(summaryOf);
      if (next === null) return;
      after = next;
    }
  }

  async setDeadline() {
    // `ttl: none`: the instances run until they are terminated.
  }

  /** @param {Reference} reference */
  suspend(reference) {
    return this.#change(reference, 'stop');
  }

  /** @param {Reference} reference */
  resume(reference) {
    return this.#change(reference, 'start');
  }

  /** @param {Reference} reference */
  async terminate({ id }) {
    // 404: the instance is already gone.
    await this.#ask('DELETE', `/instances/${id}`);
  }

  /** @returns {Promise<never>} */
  async exec() {
    throw new NotSupported('this supplier runs no commands');
  }

  inspectCommand = this.exec;
  signal = this.exec;
  dialPort = this.exec;
  files = { read: this.exec, write: this.exec, list: this.exec, remove: this.exec };

  async close() {
    // The driver keeps no connection open.
  }

  /** @param {Reference} reference @param {'start' | 'stop'} verb */
  async #change({ id, name }, verb) {
    const { status } = await this.#ask('POST', `/instances/${id}/${verb}`);
    if (status === 404) throw new InstanceGone(`the instance ${name} does not exist`);
  }

  /**
   * Sends a request to the supplier. Throws the error that says exactly what is known if there is no usable answer.
   * @param {string} method @param {string} path @param {object} [body]
   */
  async #ask(method, path, body) {
    const { response, json } = await fetch(`${this.url}${path}`, {
      method,
      headers: { authorization: `Bearer ${this.token}`, 'content-type': 'application/json' },
      signal: AbortSignal.timeout(ANSWERS_WITHIN_MS),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
      .then(async (response) => ({ response, json: response.status === 204 ? undefined : await response.json() }))
      .catch((error) => {
        throw failureOf(error);
      });
    const { status, headers } = response;
    if (status < 300 || status === 404 || status === 409) return { status, json };
    if (status === 429) throw new RateLimited('too many requests', Number(headers.get('retry-after') ?? 1));
    if (status >= 500) throw new Ambiguous(`it answered ${status}`);
    throw new Rejected(`it answered ${status}`);
  }
}

/** @param {Error & { cause?: { code?: string } }} error */
function failureOf(error) {
  if (error.name === 'TimeoutError') return new TimedOut('no answer in time', { cause: error });
  if (NEVER_CONNECTED.has(error.cause?.code ?? '')) return new NotSent('it cannot be reached', { cause: error });
  return new Ambiguous('the connection was lost, or the answer is no JSON', { cause: error });
}

/** @param {Instance} instance @returns {Reference} */
function referenceTo({ id, name }) {
  return { id, name };
}

/** @param {Instance} instance @returns {import('tollgate/supplier').InstanceSummary} */
function summaryOf(instance) {
  const { tags, state, createdAt } = instance;
  return { reference: referenceTo(instance), state: STATES[state] ?? 'starting', tags, createdAt: new Date(createdAt) };
}

module.exports = { ExampleDriver };
