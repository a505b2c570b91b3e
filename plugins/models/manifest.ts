import { pluginManifest } from '../../core/express-gateway';
import models from '.';

export = pluginManifest(models);
