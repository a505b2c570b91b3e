import { pluginManifest } from '../../core/express-gateway';
import retention from '.';

export = pluginManifest(retention);
