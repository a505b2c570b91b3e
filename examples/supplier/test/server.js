const { randomUUID } = require('node:crypto');
const { createServer } = require('node:http');

const PAGE = 2;

/** A supplier in memory, written from the supplier's published API. */
function exampleServer(token) {
  const instances = new Map();

  const routes = {
    POST: ([, id, verb], body) => {
      if (id === undefined) return create(body);
      const instance = instances.get(id);
      if (instance === undefined) return [404, {}];
      const state = verb === 'start' ? 'running' : 'stopped';
      // An instance loses its memory when it restarts.
      if (verb === 'start' && instance.state !== 'running') instance.boot = randomUUID();
      instance.state = state;
      return [200, instance];
    },
    GET: ([, id], _body, query) => {
      if (id === undefined) return list(query);
      const instance = instances.get(id);
      return instance === undefined ? [404, {}] : [200, instance];
    },
    DELETE: ([, id]) => (instances.delete(id) ? [204] : [404, {}]),
  };

  function create({ name, tags }) {
    const known = [...instances.values()].find((each) => each.name === name);
    if (known !== undefined) return [409, known];
    const id = randomUUID();
    const instance = { id, name, tags, state: 'running', boot: randomUUID(), createdAt: new Date().toISOString() };
    instances.set(id, instance);
    return [201, instance];
  }

  function list(query) {
    const tags = query.getAll('tag').map((each) => each.split('='));
    const carrying = [...instances.values()].filter((each) => tags.every(([tag, value]) => each.tags[tag] === value));
    const from = carrying.findIndex(({ id }) => id === query.get('after')) + 1;
    const items = carrying.slice(from, from + PAGE);
    return [200, { items, next: from + PAGE < carrying.length ? items.at(-1).id : null }];
  }

  return createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url, 'http://supplier');
    let text = '';
    for await (const chunk of request) text += chunk;
    const [status, body] =
      request.headers.authorization === `Bearer ${token}`
        ? routes[request.method](pathname.split('/').slice(1), text === '' ? {} : JSON.parse(text), searchParams)
        : [401, {}];
    response.writeHead(status, { 'content-type': 'application/json' }).end(body && JSON.stringify(body));
  });
}

module.exports = { exampleServer };
