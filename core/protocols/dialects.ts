import type { Protocol } from '../catalog/protocols';
import type { Meter } from '../catalog/usage';
import { CHAT_DIALECT } from './chat/members';
import type { Dialect, ItemsRule, MemberClass, MemberRule, PartRule, PartType, ToolRule, ToolType } from './dialect';
import { EMBEDDINGS_DIALECT } from './embeddings/request';
import { MESSAGES_DIALECT } from './messages/members';
import { RESPONSES_DIALECT } from './responses/members';

/** The one table of request members for each protocol. It determines the hold, the refusals and the documents. */
export const DIALECTS: Readonly<Record<Protocol, Dialect>> = {
  messages: MESSAGES_DIALECT,
  chat: CHAT_DIALECT,
  responses: RESPONSES_DIALECT,
  embeddings: EMBEDDINGS_DIALECT,
};

/** The meters of vendors' tools whose uses a call can limit. */
export const LIMITED_METERS: ReadonlySet<Meter> = new Set(
  Object.values(DIALECTS)
    .flatMap(({ tools }) => Object.values(tools))
    .flatMap(rulesOf)
    .flatMap(({ meter, isLimited }) => (meter !== undefined && isLimited === true ? meter : [])),
);

/** Returns the meters of what a client can offer unasked and answers count: tools with a limit, without objects that the vendor keeps. */
export function usedMeters({ tools, members }: Dialect): readonly Meter[] {
  const meters = Object.values(tools)
    .flatMap(rulesOf)
    .flatMap(({ meter, isLimited, names }) =>
      meter === undefined || isLimited !== true || names !== undefined ? [] : meter,
    );
  return [...meters, ...Object.values(members).flatMap(({ meter }) => meter ?? [])];
}

/** One line of the table for operators. */
interface DialectRow {
  readonly place: 'member' | 'content' | 'tool';
  readonly name: string;
  readonly class: MemberClass;
  readonly why: string;
  /** The values that are free whatever the class is. */
  readonly freeValues: string | null;
  /** The word in `sharedObjects` that allows it. */
  readonly names: string | null;
  /** The meter that must have a price in `pieces`, or it is refused. */
  readonly meter: string | null;
}

/** Returns the table of a dialect, in the order in which it is written. */
export function dialectRows({ members, parts, tools }: Dialect): readonly DialectRow[] {
  return [
    ...Object.entries(members).map(([name, rule]) => row('member', name, rule)),
    ...Object.entries(parts).flatMap(([name, part]) => partRows(name, part)),
    ...Object.entries(tools).flatMap(([name, tool]) => toolRows(name, tool)),
  ];
}

function partRows(name: string, part: PartType): readonly DialectRow[] {
  if (!('sources' in part)) return [row('content', name, part)];
  return Object.entries(part.sources).map(([source, rule]) => row('content', `${name} (${source})`, rule));
}

function toolRows(name: string, tool: ToolType): readonly DialectRow[] {
  if (!('forms' in tool)) return [row('tool', name, tool)];
  return Object.entries(tool.forms).map(([form, rule]) => row('tool', `${name} (${form})`, rule));
}

/** Returns the rule of a type of tool, or the rules of all its forms. */
export function rulesOf(tool: ToolType): readonly ToolRule[] {
  return 'forms' in tool ? Object.values(tool.forms) : [tool];
}

function row(place: DialectRow['place'], name: string, rule: MemberRule | PartRule | ToolRule): DialectRow {
  const freeValues = ('freeValues' in rule && rule.freeValues) || null;
  const names = ('names' in rule && rule.names) || null;
  const meter = ('meter' in rule && rule.meter) || null;
  return { place, name, class: rule.class, why: rule.why, freeValues, names, meter };
}

/** Returns the rule of the items that calls may name individually, or undefined without such items. */
export function itemsRule({ kept }: Pick<Dialect, 'kept'>): ItemsRule | undefined {
  return Object.values(kept).find(({ items }) => items !== undefined)?.items;
}

const VERSION = /_[0-9]+$/;

/** Returns the rule of a tool's type, or undefined for a type that the table does not have. */
export function toolRule({ tools }: Dialect, type: string): ToolType | undefined {
  if (type.includes('*')) return undefined;
  return own(tools, type) ?? own(tools, VERSION.test(type) ? type.replace(VERSION, '_*') : `${type}_*`);
}

/** Returns the rule of a top-level member, or undefined for one that the table does not have. */
export function memberRule({ members }: Dialect, name: string): MemberRule | undefined {
  return own(members, name);
}

function own<T>(table: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}
