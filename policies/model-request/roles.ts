import { forEachProtocol, PROTOCOLS, type Protocol } from '../../core/catalog/protocols';
import { fail, type GatewayError } from '../../core/errors';
import { REQUEST_TABLES } from '../../core/protocols/request-tables';

/** The roles that messages of one protocol may have. */
export interface AcceptedRoles {
  readonly words: readonly Buffer[];
  /** Returns the error for the message with this index, whose role is not accepted. */
  refuse(index: number): GatewayError;
}

const ALTERNATIVES = new Intl.ListFormat('en-GB', { type: 'disjunction' });

/** Returns the accepted roles of each protocol; those of the Messages protocol are a setting. */
export function acceptedRoles(messagesRoles: readonly string[]): Readonly<Record<Protocol, AcceptedRoles>> {
  return forEachProtocol((protocol) => {
    const roles = protocol === 'messages' ? messagesRoles : REQUEST_TABLES[protocol].roles;
    const quoted = ALTERNATIVES.format(roles.map((role) => `'${role}'`));
    return {
      words: roles.map((role) => Buffer.from(role)),
      refuse: (index) => {
        const param = `${PROTOCOLS[protocol].conversation}[${index}].role`;
        // Clients search for the vendor's wording and repeat their request without the role.
        const vendors = `messages.${index}.role: Input should be ${quoted}`;
        const message = protocol === 'messages' ? vendors : `${param}: expected one of ${roles.join(', ')}`;
        return fail('INVALID_FIELD', { param, message });
      },
    };
  });
}
