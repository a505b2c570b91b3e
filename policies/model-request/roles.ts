import { fail, type GatewayError } from '../../core/base/errors';
import { forEachProtocol, PROTOCOLS, type Protocol } from '../../core/catalog/protocols';
import { type JsonWord, knownWord } from '../../core/http/json-words';
import { REQUEST_TABLES } from '../../core/protocols/request-tables';

/** The roles that messages of one protocol may have. */
export interface AcceptedRoles {
  readonly words: ReadonlySet<JsonWord>;
  /** Returns the error for the message with this index, whose role is not accepted. */
  refuse(index: number): GatewayError;
}

/** Returns the accepted roles of each protocol. The roles of the Messages protocol are a setting. */
export function acceptedRoles(messagesRoles: readonly string[]): Readonly<Record<Protocol, AcceptedRoles>> {
  return forEachProtocol((protocol) => {
    const roles = protocol === 'messages' ? messagesRoles : REQUEST_TABLES[protocol].roles;
    return {
      words: new Set(roles.map(knownWord)),
      refuse: (index) => {
        const param = `${PROTOCOLS[protocol].conversation}[${index}].role`;
        // The list of roles is written only for an error, because the first `Intl.ListFormat` takes a process 30 ms.
        const quoted = new Intl.ListFormat('en-GB', { type: 'disjunction' }).format(roles.map((role) => `'${role}'`));
        // Clients look for the vendor's wording in the error and then repeat their request without the rejected role.
        const vendors = `messages.${index}.role: Input should be ${quoted}`;
        const message = protocol === 'messages' ? vendors : `${param}: expected one of ${roles.join(', ')}`;
        return fail('INVALID_FIELD', { param, message });
      },
    };
  });
}
