// @ts-check
// An endpoint, a part of gateway.config.yml, and work in the background.
const { sendJson } = require('tollgate/http');
const { manifest } = require('tollgate/manifest');
const { definePlugin } = require('tollgate/plugin');
const { readQuery, readText } = require('tollgate/query');
const { object, shape } = require('tollgate/shape');

const GREETINGS = /** @type {const} */ ({
  description: 'What to say, by language.',
  type: 'object',
  additionalProperties: { type: 'string', minLength: 1 },
});

const QUERY = { language: readText };

let said = 0;

const plugin = definePlugin({
  contract: 'plugin/1',
  name: 'example-plugin', // its name in system.config.yml
  summary: 'Says hello.',
  // Its settings in system.config.yml.
  schema: {
    type: 'object',
    properties: { otherwise: { description: 'What to say in other languages.', type: 'string', default: 'hello' } },
  },
  // Its own key of gateway.config.yml.
  sections: { 'example-plugin': { schema: GREETINGS } },
  routes: ({ otherwise }, gateway) => [
    {
      listener: 'public',
      auth: 'none',
      method: 'GET',
      path: '/example-plugin',
      summary: 'Says hello.',
      query: QUERY,
      answers: { 200: { description: 'A greeting.', schema: object({ greeting: shape.text }) } },
      handle: async (visit, _request, response) => {
        const { language = '' } = readQuery(visit.query, QUERY);
        // Read the configuration at each request, because a reload may have changed it.
        const greetings = gateway.section('example-plugin') ?? {};
        said += 1;
        sendJson(response, 200, { greeting: /** @type {Record<string, string>} */ (greetings)[language] ?? otherwise });
      },
    },
  ],
  start: async (_settings, gateway) => {
    const timer = setInterval(() => gateway.log.info({ said }, 'greetings so far'), 3_600_000);
    return async () => clearInterval(timer);
  },
});

module.exports = manifest({ plugins: [plugin] });
