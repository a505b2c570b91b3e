import { defineConfig } from 'vite';

/** `console/` becomes `dist/console/`: files named by their content, nothing inline, nothing from elsewhere. */
export default defineConfig({
  root: import.meta.dirname,
  base: '/console/',
  publicDir: 'public',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: '../dist/console',
    emptyOutDir: true,
    target: 'es2022',
    // A data: address would be a hole in the content security policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
});
