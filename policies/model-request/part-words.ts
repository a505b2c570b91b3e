import { forEachProtocol, type Protocol } from '../../core/catalog/protocols';
import { type JsonWord, knownWord } from '../../core/http/json-words';
import type { PartRule } from '../../core/protocols/request-table';
import { REQUEST_TABLES } from '../../core/protocols/request-tables';

/** The cost rules for a type of content part or item. */
export interface PartWord {
  readonly word: string;
  /** The cost rule of a type whose content has no sources; undefined if `sources` has the rules of the type. */
  readonly rule: PartRule | undefined;
  /** The rules by kind of source, such as `url` or `file_id`: where the vendor reads the content from. */
  readonly sources: ReadonlyMap<string, PartRule> | undefined;
}

/** The types of content parts of each protocol. */
export const PART_WORDS: Readonly<Record<Protocol, ReadonlyMap<JsonWord, PartWord>>> = forEachProtocol(wordsOf);

function wordsOf(protocol: Protocol): ReadonlyMap<JsonWord, PartWord> {
  const { items, parts } = REQUEST_TABLES[protocol];
  const words = Object.entries({ ...items, ...parts }).map(([word, part]) => {
    const rule = 'sources' in part ? undefined : part;
    const sources = 'sources' in part ? new Map(Object.entries(part.sources)) : undefined;
    return [knownWord(word), { word, rule, sources }] as const;
  });
  return new Map(words);
}
