"use strict";

// Draws /api/v1/openapi.json. No library, no request to anywhere but this gateway.

function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

let api = null;

function resolve(schema) {
  if (schema && schema.$ref) return api.components.schemas[schema.$ref.split("/").pop()] || {};
  return schema || {};
}

function typeName(schema) {
  if (!schema || schema === true) return "any";
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  const options = schema.oneOf || schema.anyOf;
  if (options) return options.map(typeName).join(" | ");
  const type = Array.isArray(schema.type) ? schema.type.join(" | ") : schema.type;
  if (type === "array") return "list of " + typeName(schema.items);
  if (type === "object" && schema.additionalProperties && schema.additionalProperties !== true) {
    return "map to " + typeName(schema.additionalProperties);
  }
  return schema.format ? type + " (" + schema.format + ")" : type || "any";
}

// The named type behind a schema that is worth a table of its own.
function named(schema) {
  if (!schema || schema === true) return [];
  if (schema.$ref) return [schema.$ref];
  const inner = [schema.items, schema.additionalProperties, ...(schema.oneOf || []), ...(schema.anyOf || [])];
  return inner.flatMap(named);
}

function fieldTable(schema, seen) {
  const resolved = resolve(schema);
  const known = seen || new Set();
  if (schema && schema.$ref) known.add(schema.$ref);
  const parts = [];
  if (resolved.description) parts.push(make("p", {}, resolved.description));
  const fields = Object.entries(resolved.properties || {});
  if (fields.length === 0) {
    if (resolved.type !== "array") parts.push(make("p", {}, make("code", {}, typeName(resolved))));
  } else {
    const body = make("tbody", {});
    for (const [name, field] of fields) {
      const notes = [];
      if ((resolved.required || []).includes(name)) notes.push("required");
      if (field.readOnly) notes.push("read-only");
      if (field.writeOnly) notes.push("write-only");
      if (field.default !== undefined) notes.push("default " + JSON.stringify(field.default));
      body.append(make("tr", {},
        make("td", {}, make("code", {}, name)),
        make("td", {}, typeName(field)),
        make("td", {}, [notes.join(", "), field.description || ""].filter(Boolean).join(". "))));
    }
    parts.push(make("table", {}, make("thead", {}, make("tr", {},
      make("th", {}, "Field"), make("th", {}, "Type"), make("th", {}, "Notes"))), body));
  }
  const inner = [resolved, ...fields.map(([, field]) => field)].flatMap(named);
  for (const reference of inner) {
    if (known.has(reference)) continue;
    known.add(reference);
    parts.push(make("h4", {}, reference.split("/").pop()), ...fieldTable({ $ref: reference }, known));
  }
  return parts;
}

function tryForm(path, operation) {
  const form = make("form", {});
  const inputs = [];
  for (const parameter of operation.parameters || []) {
    if (parameter.in === "header") continue;
    const input = make("input", { type: "text", placeholder: parameter.in });
    inputs.push([parameter, input]);
    form.append(make("label", {}, parameter.name + " ", input), " ");
  }
  const result = make("pre", { hidden: "" });
  form.append(make("button", {}, "Try it"), result);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    let url = path;
    const query = new URLSearchParams();
    for (const [parameter, input] of inputs) {
      if (parameter.in === "path") url = url.replace("{" + parameter.name + "}", encodeURIComponent(input.value));
      else if (input.value !== "") query.set(parameter.name, input.value);
    }
    if (query.size > 0) url += "?" + query;
    result.hidden = false;
    result.textContent = "GET " + url + " …";
    try {
      const response = await fetch(url);
      const text = await response.text();
      let shown = text;
      try { shown = JSON.stringify(JSON.parse(text), null, 2); } catch (_) { /* not JSON: shown as it is */ }
      result.textContent = "GET " + url + "\n" + response.status + " " + response.statusText + "\n\n" + shown;
    } catch (problem) {
      result.textContent = String(problem);
    }
  });
  return form;
}

function drawOperation(path, method, operation) {
  const missing = operation["x-not-supported"];
  const details = make("details", { class: missing ? "gone" : "", id: operation.operationId });
  details.append(make("summary", {}, make("span", { class: "method " + method }, method), make("code", {}, path),
    make("small", {}, missing ? "not supported by this version" : operation.summary || "")));
  details.dataset.text = [method, path, operation.operationId, operation.summary, operation.description].join(" ").toLowerCase();
  details.dataset.built = missing ? "no" : "yes";
  details.addEventListener("toggle", () => {
    if (details.dataset.drawn) return;
    details.dataset.drawn = "yes";
    const body = make("div", { class: "body" });
    if (operation.description) body.append(make("p", {}, operation.description));
    body.append(make("p", {}, "Operation ", make("code", {}, operation.operationId),
      ", role ", make("code", {}, operation["x-required-role"])));
    const parameters = operation.parameters || [];
    if (parameters.length > 0) {
      body.append(make("h3", {}, "Parameters"), make("table", {}, make("tbody", {}, ...parameters.map((parameter) =>
        make("tr", {}, make("td", {}, make("code", {}, parameter.name)), make("td", {}, parameter.in),
          make("td", {}, typeName(parameter.schema)), make("td", {}, parameter.description || ""))))));
    }
    const input = ((operation.requestBody || {}).content || {})["application/json"];
    if (input) body.append(make("h3", {}, "Body"), ...fieldTable(input.schema));
    const answers = Object.entries(operation.responses || {});
    for (const [status, response] of answers.filter(([status]) => status < "300")) {
      const content = (response.content || {})["application/json"];
      body.append(make("h3", {}, "Answer " + status));
      if (content && content.schema) {
        const data = content.schema.properties.data;
        body.append(make("p", {}, make("code", {}, "data"), ": " + typeName(data)), ...fieldTable(data));
      } else {
        body.append(make("p", {}, Object.keys(response.content || {}).join(", ") || "no body"));
      }
    }
    const errors = answers.map(([status]) => status).filter((status) => status >= "400");
    body.append(make("h3", {}, "Errors"), make("p", {}, errors.join(", ")));
    if (method === "GET" && !missing) body.append(make("h3", {}, "Try it"), tryForm(path, operation));
    details.append(body);
  });
  return details;
}

function filter() {
  const words = document.getElementById("find").value.toLowerCase().split(/\s+/).filter(Boolean);
  const builtOnly = document.getElementById("built").checked;
  for (const section of document.querySelectorAll("section")) {
    let shown = 0;
    for (const details of section.querySelectorAll("details")) {
      const fits = words.every((word) => details.dataset.text.includes(word));
      details.hidden = !fits || (builtOnly && details.dataset.built === "no");
      if (!details.hidden) shown += 1;
    }
    section.hidden = shown === 0;
  }
}

function draw() {
  const root = api.servers[0].url;
  const areas = new Map(api.tags.map((tag) => [tag.name, []]));
  let built = 0;
  let all = 0;
  for (const [path, item] of Object.entries(api.paths)) {
    const full = item.servers ? path : root + path;
    for (const method of ["get", "post", "put", "delete"]) {
      if (!item[method]) continue;
      all += 1;
      if (!item[method]["x-not-supported"]) built += 1;
      areas.get(item[method].tags[0]).push(drawOperation(full, method.toUpperCase(), item[method]));
    }
  }
  document.getElementById("about").textContent =
    "Version " + api.info.version + ", " + built + " of " + all + " operations supported. " + api.info.description;
  for (const [name, operations] of areas) {
    document.getElementById("areas").append(make("a", { href: "#area-" + name }, name), " ");
    document.getElementById("operations").append(
      make("section", {}, make("h2", { id: "area-" + name }, name), ...operations));
  }
  document.getElementById("find").addEventListener("input", filter);
  document.getElementById("built").addEventListener("change", filter);
}

fetch("/api/v1/openapi.json")
  .then((response) => response.json())
  .then((document_) => { api = document_; draw(); })
  .catch((problem) => {
    const about = document.getElementById("about");
    about.className = "error";
    about.textContent = "The OpenAPI document could not be loaded: " + problem;
  });
