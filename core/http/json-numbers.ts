import { isDigit, ZERO } from './json-bytes';

/** States of the scanner within a number. Each state says which bytes may follow. */
export const NUMBER_MINUS = 11;
export const NUMBER_ZERO = 12;
export const NUMBER_INTEGER = 13;
const NUMBER_POINT = 14;
const NUMBER_FRACTION = 15;
const NUMBER_E = 16;
const NUMBER_E_SIGN = 17;
const NUMBER_EXPONENT = 18;

export const MINUS = 0x2d;

/** Returns the scanner's state after the first byte of a number; undefined if no number begins with this byte. */
export function beginNumber(byte: number): number | undefined {
  if (byte === MINUS) return NUMBER_MINUS;
  return isDigit(byte) ? afterDigit(NUMBER_MINUS, byte) : undefined;
}

/** Returns whether the bytes of a number that led to this state are a complete JSON number. */
export function isWholeNumber(state: number): boolean {
  return isInteger(state) || state === NUMBER_FRACTION || state === NUMBER_EXPONENT;
}

export function isInteger(state: number): boolean {
  return state === NUMBER_ZERO || state === NUMBER_INTEGER;
}

/** Returns the scanner's state after one more byte of a number; undefined if the byte does not belong to the number. */
export function nextInNumber(state: number, byte: number): number | undefined {
  if (isDigit(byte)) return afterDigit(state, byte);
  if (byte === 0x2e) return isInteger(state) ? NUMBER_POINT : undefined;
  if ((byte | 0x20) === 0x65) return isInteger(state) || state === NUMBER_FRACTION ? NUMBER_E : undefined;
  if (byte === MINUS || byte === 0x2b) return state === NUMBER_E ? NUMBER_E_SIGN : undefined;
  return undefined;
}

function afterDigit(state: number, byte: number): number | undefined {
  switch (state) {
    case NUMBER_MINUS:
      return byte === ZERO ? NUMBER_ZERO : NUMBER_INTEGER;
    case NUMBER_ZERO:
      return undefined;
    case NUMBER_INTEGER:
      return NUMBER_INTEGER;
    case NUMBER_POINT:
    case NUMBER_FRACTION:
      return NUMBER_FRACTION;
    default:
      return NUMBER_EXPONENT;
  }
}
