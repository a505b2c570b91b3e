import { MODEL } from './gateway';

/** The protocols in which a test makes the same call. */
export const PROTOCOLS = ['messages', 'chat', 'responses'] as const;
export type TestProtocol = (typeof PROTOCOLS)[number];

export const PATH: Readonly<Record<TestProtocol, string>> = {
  messages: '/v1/messages',
  chat: '/v1/chat/completions',
  responses: '/v1/responses',
};

/** A small, valid request of Messages and Chat. */
export function ask(more: Record<string, unknown> = {}): Record<string, unknown> {
  return { model: MODEL, max_tokens: 200, messages: [{ role: 'user', content: 'Hello' }], ...more };
}

/** The members that have other names in Responses. Its calls are not stored at the vendor. */
const RESPONSES_NAMES: Readonly<Record<string, string>> = { max_tokens: 'max_output_tokens', messages: 'input' };

/** Makes a small, valid request of a protocol. Members have the names of Messages. */
export function askIn(protocol: TestProtocol, more: Record<string, unknown> = {}): Record<string, unknown> {
  if (protocol !== 'responses') return ask(more);
  const renamed = Object.entries(ask(more)).map(([name, value]) => [RESPONSES_NAMES[name] ?? name, value] as const);
  return { store: false, ...Object.fromEntries(renamed) };
}

/** Makes a request for a stream that the gateway relays unchanged: in Chat with the usage in its own chunk. */
export function askAsSent(protocol: TestProtocol): Record<string, unknown> {
  return askIn(protocol, { stream: true, ...(protocol === 'chat' && { stream_options: { include_usage: true } }) });
}
