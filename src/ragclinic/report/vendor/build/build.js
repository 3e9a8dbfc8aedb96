// npm install && npm run build: writes the scripts, their licences and VENDORED.md into the folder above.
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const OUT = new URL("..", import.meta.url).pathname;
const BUNDLES = [
  { entry: "heat.js", file: "echarts.heat.min.js", global: "echarts", packages: ["echarts", "zrender", "tslib"] },
  {
    entry: "flame.js",
    file: "d3-flame-graph.min.js",
    global: "flame",
    packages: [
      "d3-flame-graph", "d3-array", "d3-color", "d3-dispatch", "d3-ease", "d3-format", "d3-hierarchy", "d3-interpolate",
      "d3-scale", "d3-selection", "d3-time", "d3-time-format", "d3-timer", "d3-transition", "internmap",
    ],
  },
];
const COPIES = [
  { from: "uplot/dist/uPlot.iife.min.js", file: "uPlot.min.js", packages: ["uplot"] },
  { from: "uplot/dist/uPlot.min.css", file: "uPlot.min.css", packages: ["uplot"] },
];
const LICENCE_FILES = ["LICENSE", "LICENSE.txt", "NOTICE", "licenses/LICENSE-d3"];

const manifest = (name) => JSON.parse(readFileSync(`node_modules/${name}/package.json`, "utf8"));

function licence(name) {
  const files = LICENCE_FILES.map((file) => `node_modules/${name}/${file}`).filter(existsSync);
  return files.map((file) => readFileSync(file, "utf8").trim()).join("\n\n--------\n\n") + "\n";
}

// The Apache licence is named, its text is in licenses/; the short ones travel with the code, as they ask.
function terms(name) {
  if (manifest(name).license !== "Apache-2.0") return licence(name).trim();
  const file = `node_modules/${name}/NOTICE`;
  const owner = existsSync(file) ? readFileSync(file, "utf8").trim() + "\n" : "";
  return `${owner}Apache License, Version 2.0: www.apache.org/licenses/LICENSE-2.0`;
}

function notice(names) {
  const users = new Map();
  for (const name of names) {
    const text = terms(name);
    users.set(text, [...(users.get(text) ?? []), `${name} ${manifest(name).version}`]);
  }
  return `/*!\n${[...users].map(([text, who]) => `${who.join(", ")}\n${text}`).join("\n\n")}\n*/\n`;
}

rmSync(`${OUT}licenses`, { recursive: true, force: true });
mkdirSync(`${OUT}licenses`);
for (const { entry, file, global, packages } of BUNDLES) {
  await build({
    entryPoints: [entry],
    outfile: OUT + file,
    banner: { js: notice(packages) },
    bundle: true,
    minify: true,
    format: "iife",
    globalName: global,
    legalComments: "inline",
    target: "es2020",
    loader: { ".css": "empty" },
  });
}
for (const { from, file, packages } of COPIES) {
  if (file.endsWith(".js")) writeFileSync(OUT + file, notice(packages) + readFileSync(`node_modules/${from}`, "utf8"));
  else copyFileSync(`node_modules/${from}`, OUT + file);
}

const rows = [...BUNDLES, ...COPIES].map(({ file, packages }) => {
  const bytes = readFileSync(OUT + file);
  const hash = createHash("sha256").update(bytes).digest("hex");
  return `| \`${file}\` | ${packages[0]} | ${Math.round(bytes.length / 1000)} kB | \`${hash}\` |`;
});
const all = [...new Set([...BUNDLES, ...COPIES].flatMap(({ packages }) => packages))].sort();
const versions = all.map((name) => {
  writeFileSync(`${OUT}licenses/${name}.txt`, licence(name));
  const { version, license } = manifest(name);
  return `| ${name} | ${version} | ${license} | [text](licenses/${name}.txt) |`;
});
writeFileSync(
  `${OUT}VENDORED.md`,
  `# Scripts shipped in the package

Written by \`build/build.js\` (\`cd build && npm install && npm run build\`) from unmodified npm packages. Of ECharts only
what the heat map needs is bundled. A report holds all of them inline and loads nothing.

| file | of | size | SHA-256 |
| --- | --- | --- | --- |
${rows.join("\n")}

| package | version | licence | text |
| --- | --- | --- | --- |
${versions.join("\n")}
`,
);
