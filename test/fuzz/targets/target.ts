import type { Random } from '../../support/random';
import type { Rig } from '../rig';

/** One kind of input that somebody outside steers. */
export interface Target {
  readonly name: string;
  readonly summary: string;
  /** Its input goes to the running gateway, whose event loop is watched. */
  readonly isOfGateway: boolean;
  /** Sends one input. It throws when the gateway does what it must not, beyond ending or standing still. */
  run(rig: Rig, random: Random): Promise<void>;
}
