import { fail, type GatewayError } from '../../core/errors';
import { TopLevelMembers } from '../../core/json-members';
import { type JsonObserver, type JsonToken, QUOTE } from '../../core/json-scanner';
import type { Protocol } from '../../core/upstream';
import { ONCE } from './fields';
import { ImageCounter } from './image-counter';
import { isPricedTool } from './priced';
import type { AcceptedRoles } from './roles';

const ROLE = Buffer.from('role');
const CONTENT = Buffer.from('content');
const TYPE = Buffer.from('type');
const ITEM_KEYS: readonly Buffer[] = [ROLE, CONTENT, TYPE];

/** The depth of one item of `messages` or `tools`, and of the list it stands in. */
const ITEM = 3;
const LIST = 2;

/**
 * Looks at a call's body while it arrives: notes its members, checks what stands inside `messages` and `tools`, and
 * counts its images. What is wrong is kept, not thrown, for the body may yet turn out not to be JSON at all.
 */
export class CallObserver implements JsonObserver {
  readonly members = new TopLevelMembers(ONCE);
  /** The first thing that is wrong inside `messages` or `tools`. */
  fault: GatewayError | undefined;

  readonly #protocol: Protocol;
  readonly #roles: AcceptedRoles;
  readonly #imageCounter = new ImageCounter();
  #section: 'messages' | 'tools' | undefined;
  /** Index of the item under way. */
  #item = -1;
  /** The key under way in that item, when it is one we look at. */
  #key: Buffer | undefined;
  #hasRole = false;

  constructor(protocol: Protocol, roles: AcceptedRoles) {
    this.#protocol = protocol;
    this.#roles = roles;
  }

  get images(): number {
    return this.#imageCounter.images;
  }

  /** Bytes of base64 that images carry. */
  get imageBytes(): number {
    return this.#imageCounter.base64Bytes;
  }

  open(depth: number, isObject: boolean, token: JsonToken): void {
    if (depth <= LIST) this.members.open(depth, isObject, token);
    if (this.#section === undefined) return;
    if (depth === ITEM) this.#beginItem(isObject);
    else if (depth === ITEM + 1 && this.#isValueOf(ROLE)) this.#badRole();
    else if (depth > ITEM && this.#isValueOf(CONTENT)) this.#imageCounter.open(depth, isObject);
  }

  close(depth: number, token: JsonToken): void {
    if (depth <= LIST) this.members.close(depth, token);
    if (depth === LIST) this.#section = undefined;
    if (this.#section === undefined) return;
    if (depth === ITEM) this.#endItem();
    else if (this.#isValueOf(CONTENT)) this.#imageCounter.close(depth);
  }

  key(depth: number, token: JsonToken): void {
    if (depth === 1) {
      this.members.key(depth, token);
      this.#enterSection(this.members.name);
    } else if (this.#section !== undefined) {
      if (depth === ITEM) this.#key = ITEM_KEYS.find((word) => token.is(word));
      else if (this.#isValueOf(CONTENT)) this.#imageCounter.key(depth, token);
    }
  }

  scalar(depth: number, firstByte: number, token: JsonToken): void {
    if (depth === 1) this.members.scalar(depth, firstByte, token);
    if (this.#section === undefined) return;
    if (depth === LIST) this.#beginItem(false);
    else if (depth === ITEM) this.#checkItemValue(firstByte, token);
    else if (this.#isValueOf(CONTENT)) this.#imageCounter.scalar(depth, firstByte, token);
  }

  #enterSection(name: string): void {
    this.#section = name === 'messages' || name === 'tools' ? name : undefined;
    this.#item = -1;
  }

  #isValueOf(key: Buffer): boolean {
    return this.#section === 'messages' && this.#key === key;
  }

  #beginItem(isObject: boolean): void {
    this.#item += 1;
    this.#key = undefined;
    this.#hasRole = false;
    if (!isObject && this.#section === 'messages') this.#invalid('', 'expected an object');
  }

  #endItem(): void {
    if (this.#section === 'messages' && !this.#hasRole) this.#invalid('.role', 'is missing');
  }

  #checkItemValue(firstByte: number, token: JsonToken): void {
    if (this.#section === 'messages' && this.#key === ROLE) {
      if (firstByte === QUOTE && this.#roles.words.some((role) => token.is(role))) this.#hasRole = true;
      else this.#badRole();
    } else if (this.#section === 'tools' && this.#key === TYPE) {
      this.#checkToolType(firstByte, token);
    }
  }

  #badRole(): void {
    this.#hasRole = true;
    this.fault ??= this.#roles.refuse(this.#item);
  }

  #checkToolType(firstByte: number, token: JsonToken): void {
    if (firstByte === QUOTE) {
      if (isPricedTool(this.#protocol, token.text() ?? '')) return;
      const message = 'Tools that run at the upstream have no price here.';
      this.fault ??= fail('MODEL_NOT_PRICED', { param: `tools[${this.#item}].type`, message });
    } else if (firstByte !== NULL) {
      this.#invalid('.type', 'expected a string');
    }
  }

  #invalid(place: string, problem: string): void {
    const param = `${this.#section}[${this.#item}]${place}`;
    this.fault ??= fail('INVALID_FIELD', { param, message: `${param}: ${problem}` });
  }
}

const NULL = 0x6e;
