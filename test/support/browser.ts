import { type Browser, chromium } from 'playwright-core';
import { findProgram } from './programs';

/** Starts a real, headless Chromium with an empty profile that makes no requests but those of its pages. */
export function startBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: findProgram('chromium'),
    args: [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
}
