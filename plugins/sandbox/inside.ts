import { readPortDomain } from '../../core/http/port-domain';
import type { Stop } from '../../core/resources';
import { Commands } from './commands/commands';
import { PortProxy } from './ports/port-proxy';
import type { SandboxService } from './service';

/** What the endpoints work with that reach into a running sandbox: commands, files, ports. */
export interface InsideService extends SandboxService {
  readonly commands: Commands;
  readonly ports: PortProxy;
  /** Ports have hosts of their own below this; otherwise paths. */
  readonly portDomain: string | undefined;
}

export function createInside(service: SandboxService): InsideService {
  const { log, gateway } = service;
  return {
    ...service,
    commands: new Commands(service),
    ports: new PortProxy(service, log, gateway.isStopping),
    portDomain: readPortDomain(process.env),
  };
}

/** What goes on without anybody asking; answers what ends it. */
export function runInside({ commands, ports }: InsideService): Stop {
  const stops = [commands.run(), ports.run()];
  return async () => {
    for (const stop of stops) await stop();
  };
}
