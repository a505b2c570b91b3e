import { forEachProtocol, PROTOCOLS, type Protocol } from '../../core/catalog/protocols';
import { fail, type GatewayError } from '../../core/errors';
import { REQUEST_TABLES } from '../../core/protocols/request-tables';

/** The roles that messages of one protocol may have. */
export interface AcceptedRoles {
  readonly words: readonly Buffer[];
  /** Returns the error for the message with this index, whose role is not accepted. */
  refuse(index: number): GatewayError;
}

/** Returns the accepted roles of each protocol; those of the Messages protocol are a setting. */
export function acceptedRoles(messagesRoles: readonly string[]): Readonly<Record<Protocol, AcceptedRoles>> {
  return {
    ...forEachProtocol((protocol) => accepting(protocol, REQUEST_TABLES[protocol].roles, expected)),
    messages: accepting('messages', messagesRoles, expectedByVendor),
  };
}

type Refusal = (param: string, index: number, roles: readonly string[]) => string;

function accepting(protocol: Protocol, roles: readonly string[], refusal: Refusal): AcceptedRoles {
  return {
    words: roles.map((role) => Buffer.from(role)),
    refuse: (index) => {
      const param = `${PROTOCOLS[protocol].conversation}[${index}].role`;
      return fail('INVALID_FIELD', { param, message: refusal(param, index, roles) });
    },
  };
}

const expected: Refusal = (param, _index, roles) => `${param}: expected one of ${roles.join(', ')}`;

const ALTERNATIVES = new Intl.ListFormat('en-GB', { type: 'disjunction' });

/** The vendor's wording: clients search for it and repeat their request without the role. */
const expectedByVendor: Refusal = (_param, index, roles) =>
  `messages.${index}.role: Input should be ${ALTERNATIVES.format(roles.map((role) => `'${role}'`))}`;
