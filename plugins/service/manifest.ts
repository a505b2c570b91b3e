import { pluginManifest } from '../../core/express-gateway';
import service from '.';

export = pluginManifest(service);
