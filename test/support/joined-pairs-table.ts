import cl100k from 'gpt-tokenizer/bpeRanks/cl100k_base';
import o200k from 'gpt-tokenizer/bpeRanks/o200k_base';

/** One token of a vocabulary as its package has it: text, or bytes that are not text. */
type Token = string | readonly number[];

const FIRST_PRINTED = 0x20;
const PRINTED = 0x5f;
const FIRST_CONTINUATION = 0x80;
const CONTINUATIONS = 0x40;
const HIGH = 0x80;

/** Returns whether both vocabularies have a token of exactly these two bytes. */
function pairsOf(vocabularies: readonly (readonly Token[])[]): (first: number, second: number) => boolean {
  const sets = vocabularies.map((tokens) => new Set(tokens.flatMap(pairOf)));
  return (first, second) => sets.every((pairs) => pairs.has(first * 256 + second));
}

function pairOf(token: Token): number[] {
  if (token === undefined) return [];
  const bytes = typeof token === 'string' ? Buffer.from(token) : Buffer.from(token);
  return bytes.length === 2 ? [(bytes[0] as number) * 256 + (bytes[1] as number)] : [];
}

/** Returns whether no tokenizer splits between two neighbours: within letters of one case, within signs, within a character. */
function isNeverCut(first: number, second: number): boolean {
  const [one, other] = [kindOf(first), kindOf(second)];
  if (other === 'space' || one === 'digit' || other === 'digit') return false;
  if (one === 'space') return other !== 'high';
  if (one === 'lower') return other === 'lower';
  if (one === 'upper') return other === 'lower' || other === 'upper';
  return one === other;
}

function kindOf(byte: number): 'space' | 'digit' | 'lower' | 'upper' | 'high' | 'sign' {
  if (byte >= HIGH) return 'high';
  const character = String.fromCharCode(byte);
  if (character === ' ') return 'space';
  if (/\d/.test(character)) return 'digit';
  if (/[a-z]/.test(character)) return 'lower';
  return /[A-Z]/.test(character) ? 'upper' : 'sign';
}

/** Returns the two bit maps of `core/http/joined-pairs.ts` in base64. */
export function joinedPairs(): { readonly printed: string; readonly high: string } {
  const isPair = pairsOf([cl100k as unknown as readonly Token[], o200k as unknown as readonly Token[]]);
  const isJoined = (first: number, second: number) => isNeverCut(first, second) && isPair(first, second);
  return {
    printed: bitmap(PRINTED, PRINTED, (row, column) => isJoined(row + FIRST_PRINTED, column + FIRST_PRINTED)),
    high: bitmap(HIGH, CONTINUATIONS, (row, column) => isJoined(row + HIGH, column + FIRST_CONTINUATION)),
  };
}

function bitmap(rows: number, columns: number, isSet: (row: number, column: number) => boolean): string {
  const bits = Buffer.alloc(Math.ceil((rows * columns) / 8));
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      const at = row * columns + column;
      if (isSet(row, column)) bits[at >> 3] = (bits[at >> 3] as number) | (1 << (at & 7));
    }
  }
  return bits.toString('base64');
}
