import { isDeepStrictEqual } from 'node:util';
import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  type Node,
  parseDocument,
  stringify,
  visit,
  type YAMLMap,
} from 'yaml';
import { fail, GatewayError } from '../../base/errors';
import { memberOf } from '../../base/json-values';
import type { Entry, Upstream } from '../../catalog/catalog';
import type { Configuration } from '../configuration';
import { decimalText, readPrice } from '../prices';
import { ConfigurationError } from '../yaml-file';
import { hasOldPrice, type ProposalRow, withNewPrices } from './rows';

type Place = Pick<ProposalRow, 'upstream' | 'model'>;

function rowsOf(rows: readonly ProposalRow[], upstream: string, model: string): readonly ProposalRow[] {
  return rows.filter((row) => row.upstream === upstream && row.model === model);
}

/**
 * Returns the configuration with the new prices of these rows. Comments and all other settings of its text stay. `check` reads a text.
 * @throws ConfigurationError; CONFLICT if the text has the prices at no place of their own
 */
export function withRows<C extends Configuration>(
  { text, written }: Configuration,
  rows: readonly ProposalRow[],
  check: (text: string) => C,
): C {
  const wanted = writtenWith(written, rows);
  // An anchor may share a price between models. If so, the aliases are written out, so that only the accepted rows change.
  for (const base of [text, withoutAliases(text)]) {
    const changed = edited(base, rows, wanted);
    const next = changed === undefined ? undefined : check(changed);
    if (next !== undefined && isDeepStrictEqual(next.written, wanted)) return next;
  }
  throw fail('CONFLICT', {
    message: 'The text of the configuration has the prices at no place of their own; edit it by hand.',
  });
}

/** Returns the rows that can be applied: their price is still the reviewed one, and the configuration takes the new one. */
export function appliableRows(
  current: Configuration,
  rows: readonly ProposalRow[],
  check: (text: string) => Configuration,
): readonly ProposalRow[] {
  const areTaken = (some: readonly ProposalRow[]) => {
    try {
      return some.length === 0 || withRows(current, some, check) !== undefined;
    } catch (error) {
      if (error instanceof ConfigurationError || error instanceof GatewayError) return false;
      throw error;
    }
  };
  const same = rows.filter((row) => hasOldPrice(current, row));
  // Halves, because each try reads the whole configuration, and most rows are taken.
  const takenOf = (some: readonly ProposalRow[]): readonly ProposalRow[] => {
    if (areTaken(some)) return some;
    const middle = some.length >> 1;
    return middle === 0 ? [] : [some.slice(0, middle), some.slice(middle)].flatMap(takenOf);
  };
  const taken = takenOf(same);
  return taken === same || areTaken(taken) ? taken : [];
}

/** Returns the parsed file with the new prices in it. */
function writtenWith(written: unknown, rows: readonly ProposalRow[]): unknown {
  // Aliases are one object in several places; the copy has one for each, so that only the accepted rows change.
  const copy: unknown = JSON.parse(JSON.stringify(written));
  for (const { upstream, model } of rows) {
    const settings = memberOf(copy, 'serviceEndpoints', upstream, 'models', model) as { price: never };
    settings.price = structuredClone(withNewPrices(settings, rowsOf(rows, upstream, model)) ?? settings.price) as never;
  }
  return copy;
}

/** Returns the text with the wanted prices in their places; undefined if a price has no place of its own. */
function edited(text: string, rows: readonly ProposalRow[], wanted: unknown): string | undefined {
  const document = parseDocument(text);
  const edits = new Map<number, TextEdit>();
  for (const row of rows) {
    const place = placeOf(row);
    const price = isReachable(document, place) ? document.getIn(place, true) : undefined;
    if (!isMap(price)) return undefined;
    const members = Object.entries(memberOf(wanted, ...place) as Record<string, number | string>);
    const changed = members.filter(([name]) => [row.meter, 'source', 'date'].includes(name));
    for (const edit of editsOf(text, price, changed)) edits.set(edit.from, edit);
  }
  return [...edits.values()]
    .sort((one, other) => other.from - one.from)
    .reduce((rest, { from, to, by }) => rest.slice(0, from) + by + rest.slice(to), text);
}

/** A part of a text, from `from` to `to`, and what replaces it. */
interface TextEdit {
  readonly from: number;
  readonly to: number;
  readonly by: string;
}

/** Returns the edits that give a map of scalars these members. */
function editsOf(text: string, map: YAMLMap, members: readonly (readonly [string, number | string])[]): TextEdit[] {
  const edits: TextEdit[] = [];
  const added: string[] = [];
  for (const [name, value] of members) {
    const found = map.items.find(({ key }) => isScalar(key) && key.value === name)?.value as Node | null | undefined;
    const by = typeof value === 'number' ? decimalText(value) : stringify(value).trim();
    if (found?.range) edits.push({ from: found.range[0], to: found.range[1], by });
    else added.push(`${name}: ${by}`);
  }
  const first = (map.items[0]?.key as Node | undefined)?.range?.[0] ?? 0;
  const end = (map.items.at(-1)?.value as Node | undefined)?.range?.[1] ?? 0;
  if (added.length === 0) return edits;
  // In a block, new members come first, because a comment may follow the last one.
  const indent = text.slice(text.lastIndexOf('\n', first) + 1, first);
  const block = { from: first, to: first, by: added.map((each) => `${each}\n${indent}`).join('') };
  return [...edits, map.flow ? { from: end, to: end, by: `, ${added.join(', ')}` } : block];
}

const placeOf = ({ upstream, model }: Place) => ['serviceEndpoints', upstream, 'models', model, 'price'];

/** Returns whether the path leads through no alias, because an alias cannot be edited in place. */
function isReachable(document: Document, path: readonly string[]): boolean {
  return path.every((_, at) => {
    const node = document.getIn(path.slice(0, at + 1), true);
    return node !== undefined && !isAlias(node);
  });
}

function withoutAliases(text: string): string {
  const document = parseDocument(text);
  visit(document, { Alias: (_, alias) => document.createNode(alias.toJS(document)) });
  return document.toString({ lineWidth: 0 });
}

/** Returns the upstreams with the prices that they would have with these rows. */
export function upstreamsWithRows(
  { catalog, gateway }: Configuration,
  rows: readonly ProposalRow[],
): ReadonlyMap<string, ReadonlyMap<string, Entry>> {
  const upstreams = catalog.upstreams.map((each): Upstream => {
    const models = each.models.map((model) => {
      const settings = gateway.serviceEndpoints[each.name]?.models[model.name];
      const price = settings && withNewPrices(settings, rowsOf(rows, each.name, model.name));
      return price === undefined || settings === undefined
        ? model
        : { ...model, price: readPrice([], { price, mayAnswerWith: settings.mayAnswerWith }, []) };
    });
    return { ...each, models };
  });
  return new Map(
    upstreams.map((upstream) => [
      upstream.name,
      new Map(upstream.models.map((model) => [model.name, { upstream, model }])),
    ]),
  );
}
