import { forEachProtocol, type Protocol } from '../../core/catalog/protocols';
import type { PartRule } from '../../core/protocols/request-table';
import { REQUEST_TABLES } from '../../core/protocols/request-tables';

/** A word and its bytes. The reader compares bytes while the body arrives, so that it need not make a string of each token. */
export interface PartWord {
  readonly word: string;
  readonly bytes: Buffer;
  /** The rule of a part that has no sources. */
  readonly rule: PartRule | undefined;
  /** The rules by the kind of source from which the vendor reads the content, such as `url` or `file_id`. */
  readonly sources: ReadonlyMap<string, PartRule> | undefined;
}

/** The content parts of each protocol. */
export const PART_WORDS: Readonly<Record<Protocol, readonly PartWord[]>> = forEachProtocol(wordsOf);

function wordsOf(protocol: Protocol): readonly PartWord[] {
  const { items, parts } = REQUEST_TABLES[protocol];
  return Object.entries({ ...items, ...parts }).map(([word, part]) => ({
    word,
    bytes: Buffer.from(word),
    rule: 'sources' in part ? undefined : part,
    sources: 'sources' in part ? new Map(Object.entries(part.sources)) : undefined,
  }));
}
