import { mergeConfig } from 'vite';
import ofConsole from '../vite.config.mjs';

/** `console/operator/` becomes `dist/operator/`, as the console is built. */
export default mergeConfig(ofConsole, {
  root: import.meta.dirname,
  base: '/operator/',
  build: { outDir: '../../dist/operator' },
});
