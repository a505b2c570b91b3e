const assert = require('node:assert/strict');
const { once } = require('node:events');
const { createServer } = require('node:http');
const { after, before, describe, it } = require('node:test');
const [plugin] = require('..').tollgate.plugins;

const gateway = {
  log: { info: () => undefined },
  section: (name) => (name === 'example-plugin' ? { it: 'ciao' } : undefined),
};

describe('the plugin', () => {
  const [route] = plugin.routes({ otherwise: 'hello' }, gateway);
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url, 'http://gateway');
    assert.equal(pathname, route.path);
    void route.handle({ id: 'req_1', path: pathname, query: searchParams, params: {} }, request, response);
  });
  before(() => once(server.listen(0, '127.0.0.1'), 'listening'));
  after(() => server.close());

  const ask = async (query) => {
    const answer = await fetch(`http://127.0.0.1:${server.address().port}${route.path}${query}`);
    return answer.json();
  };

  it('greets in the language that is asked for', async () => {
    assert.deepEqual(await ask('?language=it'), { greeting: 'ciao' });
  });

  it('greets with the word of its settings otherwise', async () => {
    assert.deepEqual(await ask('?language=fr'), { greeting: 'hello' });
    assert.deepEqual(await ask(''), { greeting: 'hello' });
  });

  it('ends what it began', async () => {
    const stop = await plugin.start({}, gateway);
    await stop();
  });
});
