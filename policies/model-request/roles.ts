import { PROTOCOLS, type Protocol } from '../../core/catalog/protocols';
import { fail, type GatewayError } from '../../core/errors';

/** The roles of the Messages protocol. Its vendor added `system` in autumn 2026. */
export const MESSAGES_ROLES = ['user', 'assistant', 'system'] as const;

const CHAT_ROLES = ['user', 'assistant', 'tool', 'system', 'developer', 'function'] as const;
const RESPONSES_ROLES = ['user', 'assistant', 'system', 'developer'] as const;

/** The roles that messages of one protocol may have. */
export interface AcceptedRoles {
  readonly words: readonly Buffer[];
  /** Returns the error for the message with this index, whose role is not accepted. */
  refuse(index: number): GatewayError;
}

/** Returns the accepted roles of each protocol; those of the Messages protocol are a setting. */
export function acceptedRoles(messagesRoles: readonly string[]): Readonly<Record<Protocol, AcceptedRoles>> {
  return {
    messages: {
      words: wordsOf(messagesRoles),
      refuse: (index) =>
        refusal(paramOf('messages', index), `messages.${index}.role: Input should be ${quotedList(messagesRoles)}`),
    },
    chat: oneOf('chat', CHAT_ROLES),
    responses: oneOf('responses', RESPONSES_ROLES),
    embeddings: oneOf('embeddings', []),
  };
}

function oneOf(protocol: Protocol, roles: readonly string[]): AcceptedRoles {
  const refuse = (index: number) => {
    const param = paramOf(protocol, index);
    return refusal(param, `${param}: expected one of ${roles.join(', ')}`);
  };
  return { words: wordsOf(roles), refuse };
}

function wordsOf(roles: readonly string[]): readonly Buffer[] {
  return roles.map((role) => Buffer.from(role));
}

function refusal(param: string, message: string): GatewayError {
  return fail('INVALID_FIELD', { param, message });
}

function paramOf(protocol: Protocol, index: number): string {
  return `${PROTOCOLS[protocol].conversation}[${index}].role`;
}

const ALTERNATIVES = new Intl.ListFormat('en-GB', { type: 'disjunction' });

/** Returns `'a', 'b' or 'c'`. This is the vendor's wording: clients search for it and repeat their request without the role. */
function quotedList(roles: readonly string[]): string {
  return ALTERNATIVES.format(roles.map((role) => `'${role}'`));
}
