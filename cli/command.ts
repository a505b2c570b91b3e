import type { Command } from 'commander';
import { type Client, connect, type Environment } from './client';
import type { Output } from './output';

/** The environment of a verb. The client is created on first use. */
export interface Session {
  readonly client: Client;
  readonly output: Output;
  readonly environment: Environment;
}

/** Adds one verb to the command of its noun. */
export type Verb = (noun: Command, open: (command: Command) => Session) => void;

export function sessions(environment: Environment, output: Omit<Output, 'json'>): (command: Command) => Session {
  return (command) => ({
    client: connect(environment),
    environment,
    output: { ...output, json: command.optsWithGlobals()['json'] === true },
  });
}
