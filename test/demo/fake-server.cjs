// Replaces dist/server.js and dist/demo/upstream.js in tests of the quick start. It keeps its state in DATA_DIR, so that a second start finds it.
const { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } = require('node:fs');
const { createServer } = require('node:http');
const { join } = require('node:path');

const isDemo = __filename.endsWith('upstream.js');
const { DATA_DIR, PORT, ADMIN_PORT, DEMO_PORT, FAKE } = process.env;

if (FAKE === 'dies' && !isDemo) {
  console.error('gateway.config.yml, line 3: nothing here is right');
  process.exit(78);
}

process.once('SIGTERM', () => {
  // The reader of this line may already be gone if the quick start was killed.
  console.log('stopping');
  setTimeout(() => {
    note(`${isDemo ? 'demo' : 'gateway'} stopped`);
    process.exit(0);
  }, 50);
});

if (isDemo) {
  createServer((_request, response) => response.end('{}')).listen(Number(DEMO_PORT), '127.0.0.1');
} else {
  mkdirSync(DATA_DIR, { recursive: true });
  writeFileSync(join(DATA_DIR, 'admin-token'), 'the-token\n', { mode: 0o600 });
  createServer(answerPublic).listen(Number(PORT), '127.0.0.1');
  createServer(answerAdmin).listen(Number(ADMIN_PORT), '127.0.0.1');
}

function state() {
  const file = join(DATA_DIR, 'state.json');
  return existsSync(file)
    ? JSON.parse(readFileSync(file, 'utf8'))
    : { accounts: [], keys: [], credits: {}, users: [], links: 0 };
}

function change(edit) {
  const now = state();
  edit(now);
  writeFileSync(join(DATA_DIR, 'state.json'), JSON.stringify(now));
}

/** Appends to the file, because both programs may write at the same time. */
function note(text) {
  appendFileSync(join(DATA_DIR, 'notes'), `${text}\n`);
}

function send(response, status, body) {
  response
    .writeHead(status, { 'content-type': 'application/json', 'x-ai-cost': '0.00001000' })
    .end(JSON.stringify(body));
}

async function answerAdmin(request, response) {
  if (request.headers.authorization !== 'Bearer the-token') {
    return send(response, 401, { error: { message: 'no token' } });
  }
  let text = '';
  for await (const chunk of request) text += chunk;
  const [, , , nouns, id, noun] = request.url.split('?')[0].split('/');
  const now = state();
  if (nouns === 'users') {
    change((then) => (then.links += 1));
    return send(response, 201, { path: `/console/sign-in#token=${id}-${now.links + 1}` });
  }
  if (id !== undefined && !now.accounts.includes(id)) return send(response, 404, { error: { message: 'no account' } });
  if (request.method === 'GET') {
    return send(
      response,
      200,
      noun === 'users' ? { items: now.users.filter((user) => user.accountId === id) } : { id },
    );
  }
  const body = JSON.parse(text);
  if (noun === undefined) {
    const made = `account-${now.accounts.length + 1}`;
    change((then) => then.accounts.push(made));
    return send(response, 201, { id: made });
  }
  if (noun === 'credits') {
    change((then) => (then.credits[`${id} ${body.idempotencyKey}`] = body.amountUsd));
    return send(response, 201, {});
  }
  if (noun === 'users') {
    const user = { id: `user-${now.users.length + 1}`, accountId: id, email: body.email };
    if (now.users.some(({ email }) => email === body.email)) return send(response, 409, {});
    change((then) => then.users.push(user));
    return send(response, 201, user);
  }
  const key = `sk-svc-${now.keys.length + 1}`;
  change((then) => then.keys.push(key));
  send(response, 201, { id: 'key', key });
}

function answerPublic(request, response) {
  const path = request.url;
  if (path === '/readyz') return send(response, 200, {});
  const key = request.headers['x-api-key'] ?? request.headers.authorization?.slice(7);
  if (!state().keys.includes(key)) return send(response, 401, {});
  if (path === '/v1/balance') return send(response, 200, {});
  if (path === '/v1/sandboxes') return send(response, 202, { id: 'sandbox-1' });
  if (path.startsWith('/v1/sandboxes/'))
    return send(response, path.startsWith('/v1/sandboxes/sandbox-1') ? 200 : 404, {});
  if (path === '/v1/messages')
    return send(response, 200, { content: [{ text: 'Hello' }], usage: { output_tokens: 1 } });
  if (path === '/v1/embeddings')
    return send(response, 200, { data: [{ embedding: [1] }, { embedding: [1] }], usage: { prompt_tokens: 5 } });
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write('data: {"choices":[{"delta":{"content":"Hello"}}]}\n\n');
  response.write('data: {"choices":[],"usage":{"completion_tokens":1}}\n\n');
  response.end(FAKE === 'cut' ? '' : 'data: [DONE]\n\n');
}
