import { mutateBytes, mutateJson } from '../mutate';
import { MODEL, type Rig } from '../rig';
import type { Target } from './target';

const MESSAGES = [{ role: 'user', content: [{ type: 'text', text: 'hello' }] }];

/** Lists a valid body for each route with a body. */
function samples({ sandboxId }: Rig): readonly (readonly [path: string, body: object])[] {
  return [
    [
      '/v1/messages',
      { model: MODEL, max_tokens: 10, messages: MESSAGES, system: 'be brief', tools: [], temperature: 0.5 },
    ],
    [
      '/v1/chat/completions',
      { model: MODEL, max_tokens: 10, messages: MESSAGES, stream_options: { include_usage: true } },
    ],
    ['/v1/quotes', { requirements: { cpu: { min: 1 }, capabilities: ['exec'] }, maxEstimatedHourlyUsd: 10 }],
    [
      '/v1/sandboxes',
      { selection: { requirements: { cpu: { min: 900 } } }, idempotencyKey: 'k', metadata: { a: 'b' } },
    ],
    [`/v1/sandboxes/${sandboxId}/commands`, { command: 'true', timeoutSeconds: 1, env: { A: 'b' }, cwd: '.' }],
    [`/v1/sandboxes/${sandboxId}/files`, { path: 'fuzz.txt', content: 'hello', encoding: 'utf8' }],
  ];
}

/** Sends JSON bodies with wrong values, shapes and bytes to the routes. An error of the gateway itself (500) is a finding. */
export const bodies: Target = {
  name: 'bodies',
  summary: 'JSON bodies of each route',
  isOfGateway: true,
  run: async (rig, random) => {
    const [path, sample] = random.pick(samples(rig));
    rig.answerNextWith([]);
    const json = Buffer.from(JSON.stringify(mutateJson(random, sample)));
    const body = random.below(3) === 0 ? mutateBytes(random, json) : json;
    const headers = { 'content-type': 'application/json' };
    const { status, text } = await rig.gateway.call(path, { key: rig.key, body, headers });
    if (status === 500) throw new Error(`${path} answered 500 to ${body.toString().slice(0, 500)}: ${text}`);
    if (text.length > 65_536) throw new Error(`${path} answered ${text.length} bytes to a body of ${body.length}`);
  },
};
