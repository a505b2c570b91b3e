import type { Protocol } from '../../core/upstream';

/** Tools that run at the client and cost nothing but tokens. Whatever else an upstream offers is charged by it apart. */
const CLIENT_TOOLS: Readonly<Record<Protocol, RegExp>> = {
  messages: /^(?:custom|(?:bash|text_editor|computer|memory)_[0-9]+)$/,
  chat: /^(?:function|custom)$/,
};

export function isPricedTool(protocol: Protocol, type: string): boolean {
  return CLIENT_TOOLS[protocol].test(type);
}

/** Members that change what tokens cost, with the values that do not. */
export const PRICED_VALUES: Readonly<Record<string, readonly unknown[]>> = {
  service_tier: [null, 'auto', 'default', 'standard_only'],
  speed: [null, 'standard'],
  inference_geo: [null, 'global'],
  web_search_options: [null],
};
