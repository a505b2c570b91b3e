import type { Proxies } from '../../core/http/proxies';

export const NO_PROXIES: Proxies = { count: 0, isProxy: () => false };
