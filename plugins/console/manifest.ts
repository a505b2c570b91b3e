import { pluginManifest } from '../../core/gateway/manifest';
import consolePlugin from '.';

export = pluginManifest(consolePlugin);
