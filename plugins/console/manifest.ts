import { pluginManifest } from '../../core/express-gateway';
import consolePlugin from '.';

export = pluginManifest(consolePlugin);
