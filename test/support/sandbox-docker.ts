import type { GatewayOptions } from './gateway';
import { SMALL } from './sandboxes';
import { sharedDocker } from './shared';

/** Starts a gateway with the offering "small" on the shared Docker engine, with these settings of the sandbox plugin. */
export async function dockerGateway(
  settings: object = {},
): Promise<Pick<GatewayOptions, 'upstreams' | 'plugins' | 'configure'>> {
  const { socket, image } = await sharedDocker();
  return {
    upstreams: { none: { url: 'http://127.0.0.1:9' } },
    plugins: { sandbox: { ...settings, suppliers: { local: { driver: 'docker', socket, answersWithin: '1s' } } } },
    configure: (config: Record<string, unknown>) => {
      const resources = { cpu: 0.5, memoryGiB: 0.0625 };
      config['offerings'] = { small: { ...SMALL, resources, supplierSettings: { image } } };
    },
  };
}
