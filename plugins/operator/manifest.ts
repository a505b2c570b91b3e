import { pluginManifest } from '../../core/express-gateway';
import operator from '.';

export = pluginManifest(operator);
