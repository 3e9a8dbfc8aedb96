// Draws the charts from the data block. All numbers were computed before; every text comes from the block or the DOM.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const $ = (id) => document.getElementById(id);
  const text = (key) => data.text[key];
  const seconds = (s) => (s >= 1 ? `${s.toFixed(1)} s` : `${Math.round(s * 1000)} ms`);
  const percent = (share) => `${Math.round(share * 100)}%`;

  // A custom property holds light-dark(...) unresolved; an element's own colour is resolved.
  const probe = document.body.appendChild(document.createElement("span"));
  probe.hidden = true;
  const colour = (name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const font = (size) => `${size}px ${getComputedStyle(document.body).fontFamily}`;

  const PLANE = ["#3f7fb5", "#8ebbd8", "#dfe8ea", "#f6e3a4", "#eca95c", "#d2553a", "#9c2a1c"];
  const AXIS = "#747c87"; // reads on both grounds: a heat map drawn again just before printing prints empty in Chromium
  const MARK = { before: "#16191d", after: "#ffffff" };
  const ZONE_NAMES = [[0.02, 0.36, "heat.ideal", "#16191d", "right"], [0.2, 0.78, "heat.coupled", "#16191d", "right"], [0.98, 0.94, "heat.contended", "#ffffff", "left"]];
  const SHAPE = { before: "circle", after: "diamond" };

  let heat = null;
  function drawHeat() {
    const box = $("heat");
    if (!box || !data.heat) return;
    const { plane, contours, points } = data.heat;
    const side = plane.map((_, i) => i);
    // Cells of whole pixels: others show as a grid of seams.
    const margin = { left: 56, right: 14, top: 8, bottom: 48 };
    const cells = Math.max(1, Math.min(8, Math.floor((box.clientWidth - margin.left - margin.right) / side.length))) * side.length;
    box.style.height = `${cells + margin.top + margin.bottom}px`;
    if (heat) heat.dispose();
    heat = echarts.init(box, null, { renderer: "canvas" });
    const longest = Math.max(1e-9, ...Object.values(points).flat().map((p) => p[2]));
    const label = { color: AXIS, fontFamily: getComputedStyle(document.body).fontFamily, fontSize: 12 };
    const shown = (name, where) => ({
      type: "value", min: 0, max: 1, interval: 0.25, name, nameLocation: "middle", position: where,
      nameGap: where === "left" ? 34 : 28, nameTextStyle: label, axisLabel: label, splitLine: { show: false },
      axisLine: { show: true, lineStyle: { color: AXIS } }, axisTick: { show: true, lineStyle: { color: AXIS } },
    });
    const hidden = { type: "category", data: side, show: false };
    heat.setOption({
      animation: false,
      grid: { left: margin.left, top: margin.top, width: cells, height: cells, outerBoundsMode: "none" },
      tooltip: {
        confine: true,
        backgroundColor: "var(--ground)",
        borderColor: "var(--line)",
        textStyle: { color: "var(--ink)", fontSize: 12 },
        formatter: ({ seriesType, seriesName, value }) => {
          const [x, y] = seriesType === "heatmap" ? value.map((v) => v / (side.length - 1)) : value;
          const last = seriesType === "heatmap" ? `${text("heat.heat")} ${value[2]}` : `${seriesName} ${seconds(value[2])}`;
          return `${text("heat.memory")} ${x.toFixed(2)}<br>${text("heat.redundancy")} ${y.toFixed(2)}<br>${last}`;
        },
      },
      xAxis: [shown(text("heat.memory"), "bottom"), hidden],
      yAxis: [shown(text("heat.redundancy"), "left"), hidden],
      visualMap: { show: false, min: 0, max: 100, seriesIndex: 0, inRange: { color: PLANE } },
      series: [
        {
          type: "heatmap", xAxisIndex: 1, yAxisIndex: 1, progressive: 0, emphasis: { disabled: true },
          data: plane.flatMap((row, y) => row.map((value, x) => [x, y, value])),
        },
        ...contours.map((line) => ({
          type: "line", data: line, showSymbol: false, silent: true, z: 3, lineStyle: { color: "#16191d", width: 1, type: [5, 4] },
        })),
        {
          type: "scatter", symbolSize: 0, silent: true, z: 3,
          data: ZONE_NAMES.map(([x, y, key, color, position]) => ({ value: [x, y], label: { formatter: text(key), color, position } })),
          label: { show: true, distance: 0, fontSize: 12, fontFamily: label.fontFamily },
        },
        ...Object.entries(points).map(([run, data]) => ({
          type: "scatter", name: text(`page.${run}`), data, z: 4, symbol: SHAPE[run],
          symbolSize: (p) => (cells / 512) * (6 + 17 * Math.sqrt(p[2] / longest)),
          itemStyle: { color: MARK[run], opacity: 0.85, borderWidth: 1.2, borderColor: run === "before" ? "#ffffff" : "#16191d" },
        })),
      ],
    });
    // ECharts 6.1 paints heat maps in slices, a few milliseconds a frame, whatever `progressive` says; a page that is
    // printed or photographed at once would show half a plane.
    heat.getZr().storage.traverse((shape) => { shape.incremental = 0; });
    heat.getZr().refreshImmediately({ paintAll: true });
  }

  let curves = null;
  function drawCurves() {
    const box = $("cdf");
    if (!box || !data.cdf) return;
    if (curves) curves.destroy();
    const { x, series, slo_s: slo, log } = data.cdf;
    const stroke = { before: colour("was"), after: colour("now") };
    const alone = !series.some((s) => s.run === "after");
    const axis = { stroke: colour("muted"), font: font(12), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line"), width: 1 } };
    const objective = (u) => {
      const left = Math.round(u.valToPos(slo, "x", true));
      if (left < u.bbox.left || left > u.bbox.left + u.bbox.width) return;
      const { ctx } = u;
      ctx.save();
      ctx.strokeStyle = ctx.fillStyle = colour("bad");
      ctx.setLineDash([4 * devicePixelRatio, 4 * devicePixelRatio]);
      ctx.beginPath();
      ctx.moveTo(left, u.bbox.top);
      ctx.lineTo(left, u.bbox.top + u.bbox.height);
      ctx.stroke();
      ctx.font = font(12 * devicePixelRatio);
      const words = text("page.objective");
      const wide = ctx.measureText(words).width + 8 * devicePixelRatio;
      const from = left + wide < u.bbox.left + u.bbox.width ? left + 2 : left - wide - 2;
      ctx.textAlign = "left";
      const middle = u.bbox.top + u.bbox.height * 0.62;
      ctx.fillStyle = colour("ground");
      ctx.fillRect(from, middle - 9 * devicePixelRatio, wide, 18 * devicePixelRatio);
      ctx.fillStyle = colour("bad");
      ctx.textBaseline = "middle";
      ctx.fillText(words, from + 4 * devicePixelRatio, middle);
      ctx.restore();
    };
    curves = new uPlot({
      width: box.clientWidth,
      height: box.clientWidth < 500 ? 260 : 330,
      scales: { x: { time: false, distr: log ? 3 : 1, range: (_, min, max) => (log ? [min * 0.8, max * 1.25] : [0, max * 1.05]) }, y: { range: [0, 1.02] } },
      axes: [
        { ...axis, label: text("latency.axis_x"), labelFont: font(12), labelSize: 20, size: 34,
          values: (_, splits) => splits.map((v) => (v === null ? "" : v >= 0.01 ? String(+v.toPrecision(3)) : String(v))) },
        { ...axis, size: 52, values: (_, splits) => splits.map(percent) },
      ],
      series: [
        { label: text("latency.axis_x"), value: (_, v) => (v === null ? "–" : seconds(v)) },
        ...series.map((s) => ({
          label: s.label,
          stroke: alone ? colour("link") : stroke[s.run],
          width: s.measure === "total" ? 2 : 1.5,
          dash: s.measure === "total" ? [] : [3, 3],
          paths: uPlot.paths.stepped({ align: 1 }),
          points: { show: false },
          value: (_, v) => (v === null ? "–" : percent(v)),
        })),
      ],
      legend: { markers: { width: 2, dash: (u, i) => (u.series[i].dash.length ? "dotted" : "solid") } },
      hooks: { draw: [objective] },
    }, [x, ...series.map((s) => s.y)], box);
  }

  // Frames grow to their width in an animation; a page that is printed or photographed at once needs them whole.
  function settle(box) {
    flame.select(box).selectAll("g.frame").each(function (d) {
      flame.select(this).select("rect").interrupt().attr("width", this.getAttribute("width"));
      flame.select(this).select("div").interrupt().text(d.data.name);
    });
  }

  const depth = (node) => 1 + Math.max(0, ...node.children.map(depth));

  // The library starts a frame's colour from its data; a stage keeps the colour of its bar, the rest stays quiet.
  function drawFlames() {
    for (const [run, tree] of Object.entries(data.flame)) {
      const box = $(`flame-${run}`);
      box.replaceChildren();
      const whole = tree.value || 1;
      const words = (d) => `${d.data.name} ${seconds(d.data.value / 1000)}, ${percent(d.data.value / whole)}`;
      const chart = flame.flamegraph()
        .width(box.clientWidth)
        .cellHeight(22)
        .minFrameSize(1)
        .transitionDuration(matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 250)
        .inverted(true)
        .sort(false)
        .selfValue(false)
        .setLabelHandler(words)
        .setDetailsHandler((shown) => { $("flame-detail").textContent = shown || "\u00a0"; })
        .setColorMapper((d) => (d.data.slot === null ? colour("frame") : d.data.slot === "rest" ? colour("s-rest") : colour(`s-${d.data.slot}`)));
      flame.select(box).datum(structuredClone(tree)).call(chart.height(22 * depth(tree)));
      settle(box);
    }
  }

  function drawThemed() {
    drawCurves();
    drawFlames();
  }

  function draw() {
    drawHeat();
    drawThemed();
  }

  function setTheme(theme) {
    if (theme) root.dataset.theme = theme;
    else delete root.dataset.theme;
    drawThemed();
  }

  const dark = matchMedia("(prefers-color-scheme: dark)");
  const theme = () => root.dataset.theme || (dark.matches ? "dark" : "light");
  $("theme").addEventListener("click", () => setTheme(theme() === "dark" ? "light" : "dark"));
  dark.addEventListener("change", drawThemed);
  let chosen;
  addEventListener("beforeprint", () => {
    chosen = root.dataset.theme;
    if (theme() === "dark") setTheme("light");
    // A canvas drawn just now prints empty unless its pixels were asked for.
    for (const canvas of document.querySelectorAll("canvas")) canvas.getContext("2d").getImageData(0, 0, 1, 1);
  });
  addEventListener("afterprint", () => { if (chosen !== root.dataset.theme) setTheme(chosen); });
  let width = innerWidth;
  let pending = 0;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    cancelAnimationFrame(pending);
    pending = requestAnimationFrame(draw);
  });
  draw();
})();
