import type { Protocol } from '../catalog/protocols';
import type { Meter } from '../catalog/usage';
import { CHAT_TABLE } from './chat/request';
import { EMBEDDINGS_TABLE } from './embeddings/request';
import { MESSAGES_TABLE } from './messages/request';
import type {
  CostRule,
  ItemsRule,
  MemberClass,
  MemberRow,
  PartRow,
  RequestTable,
  ToolRow,
  ToolRule,
} from './request-table';
import { RESPONSES_TABLE } from './responses/request';

export const REQUEST_TABLES: Readonly<Record<Protocol, RequestTable>> = {
  messages: MESSAGES_TABLE,
  chat: CHAT_TABLE,
  responses: RESPONSES_TABLE,
  embeddings: EMBEDDINGS_TABLE,
};

/** The member, of protocols that have it, with which a client says whether the vendor keeps the answer. */
export const STORE = 'store';

/** The meters of those vendor tools that are charged by use and whose uses a call can limit. */
export const LIMITED_METERS: ReadonlySet<Meter> = new Set(
  Object.values(REQUEST_TABLES)
    .flatMap(({ tools }) => Object.values(tools))
    .flatMap(rulesOf)
    .flatMap(({ meter, isLimited }) => (meter !== undefined && isLimited === true ? meter : [])),
);

/**
 * Returns the meters of tools that have a limit of uses and name no vendor resource. Adds the meters of members that cost one piece (unit
 * of the meter) per call.
 */
export function usedMeters({ tools, members }: RequestTable): readonly Meter[] {
  const meters = Object.values(tools)
    .flatMap(rulesOf)
    .flatMap(({ meter, isLimited, names }) =>
      meter === undefined || isLimited !== true || names !== undefined ? [] : meter,
    );
  return [...new Set([...meters, ...Object.values(members).flatMap(({ meter }) => meter ?? [])])];
}

/** One line of the table that shows operators how parts of a request affect its cost. */
interface CostLine {
  readonly place: 'member' | 'content' | 'tool';
  readonly name: string;
  readonly class: MemberClass;
  readonly why: string;
  /** The values of the request part that cost nothing, whatever its `class`; null if there are none. */
  readonly freeValues: string | null;
  /** The word in the setting `sharedObjects` that allows the request part; null if it names no vendor resource. */
  readonly names: string | null;
  /** The meter for which the setting `pieces` must have a price. Otherwise the gateway refuses the request. null if the request part needs no such price. */
  readonly meter: string | null;
}

/** Returns how each member, item, part and tool of a table affects the hold, in the table's order. */
export function costLines({ members, items, parts, tools }: RequestTable): readonly CostLine[] {
  return [
    ...Object.entries(members).map(([name, row]) => line('member', name, row)),
    ...Object.entries({ ...items, ...parts }).flatMap(([name, part]) => partLines(name, part)),
    ...Object.entries(tools).flatMap(([name, tool]) => toolLines(name, tool)),
  ];
}

function partLines(name: string, part: PartRow): readonly CostLine[] {
  if (!('sources' in part)) return [line('content', name, part)];
  return Object.entries(part.sources).map(([source, rule]) => line('content', `${name} (${source})`, rule));
}

function toolLines(name: string, tool: ToolRow): readonly CostLine[] {
  if (!('forms' in tool)) return [line('tool', name, tool)];
  return Object.entries(tool.forms).map(([form, rule]) => line('tool', `${name} (${form})`, rule));
}

/** Returns the rule of a type of tool, or the rules of all its forms. */
export function rulesOf(tool: ToolRow): readonly ToolRule[] {
  return 'forms' in tool ? Object.values(tool.forms) : [tool];
}

type Described = CostRule & Partial<Pick<MemberRow, 'freeValues' | 'harmless' | 'names' | 'meter'>>;

function line(place: CostLine['place'], name: string, rule: Described): CostLine {
  const { class: of, why, harmless = [], names = null, meter = null } = rule;
  const listed = of === 'free' ? [] : harmless.map((value) => JSON.stringify(value));
  const freeValues = rule.freeValues ?? (listed.length === 0 ? null : listed.join(', '));
  return { place, name, class: of, why, freeValues, names, meter };
}

/** Returns where answers list the items that later calls may name individually; undefined if no resource of the protocol has such items. */
export function itemsRule({ kept }: Pick<RequestTable, 'kept'>): ItemsRule | undefined {
  return Object.values(kept).find(({ items }) => items !== undefined)?.items;
}

const VERSION = /_[0-9]+$/;

/** Returns the row of a tool's type, or undefined for a type that the table does not have. */
export function toolRow({ tools }: RequestTable, type: string): ToolRow | undefined {
  if (type.includes('*')) return undefined;
  return own(tools, type) ?? own(tools, VERSION.test(type) ? type.replace(VERSION, '_*') : `${type}_*`);
}

/** Returns the row of a top-level member, or undefined for one that the table does not have. */
export function memberRow({ members }: RequestTable, name: string): MemberRow | undefined {
  return own(members, name);
}

function own<T>(table: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}
