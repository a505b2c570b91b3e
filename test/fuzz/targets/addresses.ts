import assert from 'node:assert/strict';
import { MODEL } from '../../support/gateway';
import type { Random } from '../../support/random';
import { mutateBytes } from '../mutate';
import type { Target } from './target';

/** Addresses that a vendor must not read for a customer, and some that it may. */
const ADDRESSES = [
  'gs://bucket/x.png',
  's3://bucket/x.png',
  'file:///etc/passwd',
  'https://api.anthropic.com/v1/files/file_1/content',
  'https://api.openai.com/v1/files/file-1/content',
  'http://127.0.0.1/v1/files/file-1',
  'https://x.example/y.png',
  'data:image/png;base64,AAAA',
  'data:video/mp4;base64,AAAA',
];
const MIXED = ['\t', '\n', ' ', '\\', '@', '%2e', '.', '\u3002', ':', '/', '#', '?', 'http://', 'data:image/png,'];
const PLACEHOLDER = 'the address';
const OPENED = ['api.anthropic.com', 'api.openai.com', '127.0.0.1'];

const PLACES: readonly ((url: string) => readonly [path: string, part: object])[] = [
  (url) => ['/v1/messages', { type: 'image', source: { type: 'url', url } }],
  (url) => ['/v1/messages', { type: 'document', source: { type: 'url', url } }],
  (url) => ['/v1/chat/completions', { type: 'image_url', image_url: { url } }],
  (url) => ['/v1/responses', { type: 'input_image', image_url: url }],
  (url) => ['/v1/responses', { type: 'input_file', file_url: url }],
];

/** Sends addresses of content. Only data of an image or document and the web outside of the platform may reach the upstream. */
export const addresses: Target = {
  name: 'addresses',
  summary: 'addresses of images and documents',
  isOfGateway: true,
  run: async ({ gateway, key, answerNextWith }, random) => {
    const url = changed(random, random.pick(ADDRESSES));
    const [path, part] = random.pick(PLACES)(PLACEHOLDER);
    const turn = [{ role: 'user', content: [part] }];
    const asked = path === '/v1/responses' ? { max_output_tokens: 1, input: turn } : { max_tokens: 1, messages: turn };
    answerNextWith([]);
    const body = JSON.stringify({ model: MODEL, ...asked }).replace(`"${PLACEHOLDER}"`, () => escaped(random, url));
    const { status, json } = await gateway.call(path, { key, body });
    if (status === 400) {
      assert.match(String(json.error?.param), /(?:url|file_url)$/, JSON.stringify(json));
      return;
    }
    assert.ok(mayReach(url), `${JSON.stringify(url)} has reached an upstream`);
  },
};

function changed(random: Random, address: string): string {
  if (random.below(3) === 0) return mutateBytes(random, Buffer.from(address)).toString();
  let text = address;
  for (let change = random.below(3); change > 0; change -= 1) {
    const at = random.below(text.length + 1);
    text = text.slice(0, at) + random.pick(MIXED) + text.slice(at);
  }
  return random.below(2) === 0 ? text : text.toUpperCase();
}

/** Writes a JSON string with some characters as escapes. */
function escaped(random: Random, text: string): string {
  const units = Array.from({ length: text.length }, (_, at) => text.charCodeAt(at));
  const written = units.map((unit) =>
    random.below(20) === 0
      ? `\\u${unit.toString(16).padStart(4, '0')}`
      : JSON.stringify(String.fromCharCode(unit)).slice(1, -1),
  );
  return `"${written.join('')}"`;
}

function mayReach(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, pathname } = new URL(text);
  if (protocol === 'data:') return /^(?:image|application|text)\//i.test(pathname);
  const host = hostname.replace(/\.+$/, '');
  return ['http:', 'https:'].includes(protocol) && !OPENED.some((each) => host === each || host.endsWith(`.${each}`));
}
